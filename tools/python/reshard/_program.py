# SPDX-License-Identifier: BSD-3-Clause
"""The command line, run in this process."""

import sys

from . import BackendError, CheckFailure, Findings, InputError, command

_CODES = {InputError: 2, CheckFailure: 3, BackendError: 4}


def main() -> int:
    try:
        sys.stdout.write(command(*sys.argv[1:] or ["--help"]))
    except Findings as findings:
        sys.stdout.write(findings.text)
        _say(findings)
        return 1
    except tuple(_CODES) as error:
        _say(error)
        return _CODES[type(error)]
    return 0


def _say(error):
    for line in str(error).splitlines():
        print(f"reshard: error: {line}", file=sys.stderr)
