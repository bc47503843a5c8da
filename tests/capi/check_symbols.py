#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A shared library shows exactly the names of the committed list, and exactly what its headers
declare.

check_symbols.py --library libreshard.so --names reshard.symbols --header reshard.h
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

SKIPPED = 77


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--names", required=True, type=pathlib.Path)
    parser.add_argument("--header", required=True, nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    if shutil.which("nm") is None:
        print("skipped: no nm (apt install binutils)")
        return SKIPPED
    done = subprocess.run(
        ["nm", "-D", "--defined-only", arguments.library],
        check=True,
        capture_output=True,
        text=True,
    )
    shown = sorted(line.split()[2] for line in done.stdout.splitlines() if line.split()[1] != "A")
    expected = sorted(arguments.names.read_text().split())
    declared = sorted(
        name
        for header in arguments.header
        for name in re.findall(r"^RESHARD_API .*?(\w+)\(", header.read_text(), re.MULTILINE)
    )
    problems = [f"shown but not listed: {name}" for name in shown if name not in expected]
    problems += [f"listed but not shown: {name}" for name in expected if name not in shown]
    problems += [
        f"declared but not listed: {name}"
        for name in declared
        if name.split("@")[0] not in {e.split("@")[0] for e in expected}
    ]
    problems += [
        f"listed but not declared: {name}"
        for name in expected
        if name.split("@")[0] not in declared
    ]
    print("\n".join(problems) if problems else f"{len(shown)} names, all as listed and declared")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
