#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/capi/example.py prints what its page shows, and an error of the library becomes an
exception."""

import argparse
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import built  # noqa: E402



def run(*arguments):
    command = [sys.executable, "-B", built.ROOT / "tools" / "capi" / "example.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    if built.SANITIZE:
        print("skipped: a library with sanitizers is not loaded into Python")
        return built.SKIPPED
    page = (built.ROOT / "tools" / "capi" / "README.md").read_text()
    expected = re.search(
        r"```console\n\$ python3 tools/capi/example.py --library \S+\n(.*?)```", page, re.DOTALL
    )[1]
    done = run("--library", built.LIBRARY)
    if done.returncode != 0 or done.stdout != expected:
        sys.exit(f"example.py: expected\n{expected}\nfound\n{done.stdout}{done.stderr}")
    wrong = run("--library", built.LIBRARY, "--rank", "9")
    if wrong.returncode == 0 or "ValueError: rank: expected one of 0-3" not in wrong.stderr:
        sys.exit(f"example.py: expected an error about rank 9, found\n{wrong.stdout}{wrong.stderr}")
    print("example.py prints what its page shows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
