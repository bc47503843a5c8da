# SPDX-License-Identifier: BSD-3-Clause
"""python -m reshard plan --help"""

import sys

from ._program import main

sys.exit(main())
