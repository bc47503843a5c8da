# SPDX-License-Identifier: BSD-3-Clause
"""Writes traces in the same way for every generator: one JSON object per line, keys as given, plain
ASCII."""

import json
import sys


def write(header, operations):
    lines = [{"reshard_trace": 1, **header}, *operations]
    sys.stdout.write("".join(json.dumps(line) + "\n" for line in lines))
