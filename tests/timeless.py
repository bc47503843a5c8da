# SPDX-License-Identifier: BSD-3-Clause
"""The program's output, without the parts that depend on the machine and the date."""

import re


def timeless(text):
    """Without what a run took: phases under -v, and progress in a log."""
    text = re.sub(r"^phases  .*\n( {9,}.*\n)*", "", text, flags=re.MULTILINE)
    text = re.sub(r"^reshard: .* s so far.*\n", "", text, flags=re.MULTILINE)
    return re.sub(r',\s*"phases": \[.*?\]', "", text, flags=re.DOTALL)
