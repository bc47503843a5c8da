#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/capi/example.py prints what its page shows, and an error of the library becomes an
exception."""

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SKIPPED = 77


def run(*arguments):
    command = [sys.executable, "-B", ROOT / "tools" / "capi" / "example.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--sanitize", default="")
    arguments = parser.parse_args()
    if arguments.sanitize:
        print("skipped: a library with sanitizers is not loaded into Python")
        return SKIPPED
    page = (ROOT / "tools" / "capi" / "README.md").read_text()
    expected = re.search(
        r"```console\n\$ python3 tools/capi/example.py --library \S+\n(.*?)```", page, re.DOTALL
    )[1]
    done = run("--library", arguments.library)
    if done.returncode != 0 or done.stdout != expected:
        sys.exit(f"example.py: expected\n{expected}\nfound\n{done.stdout}{done.stderr}")
    wrong = run("--library", arguments.library, "--rank", "9")
    if wrong.returncode == 0 or "ValueError: rank: expected one of 0-3" not in wrong.stderr:
        sys.exit(f"example.py: expected an error about rank 9, found\n{wrong.stdout}{wrong.stderr}")
    print("example.py prints what its page shows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
