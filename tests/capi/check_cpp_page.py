#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The C++ test of tools/capi/README.md, to the letter, and tests/capi/test_hpp.cpp are C++17
without a warning for every compiler there is, and the page's test passes and takes ten lines.

check_cpp_page.py --include build/release/include --library libreshard.so.0
                  --main libCatch2WithMain.a
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SKIPPED = 77
FLAGS = ["-std=c++17", "-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror"]


def run(*command):
    done = subprocess.run(
        [str(c) for c in command], capture_output=True, text=True, timeout=240, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(str(c) for c in command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def check(compiler, arguments, page, folder):
    source, program = folder / "rows_to_columns.cpp", folder / "rows_to_columns"
    source.write_text(page)
    flags = [*FLAGS, f"-I{arguments.include}"]
    linked = [arguments.library, f"-Wl,-rpath,{arguments.library.parent}", arguments.main]
    run(compiler, *flags, source, "-o", program, *linked)
    out = run(program)
    if "All tests passed (1 assertion in 1 test case)" not in out:
        sys.exit(f"the page's test by {compiler}: found\n{out}")
    run(compiler, *flags, "-fsyntax-only", ROOT / "tests" / "capi" / "test_hpp.cpp")
    print(f"C++17 by {compiler}: no warning, and the page's test passes")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--include", required=True, type=pathlib.Path)
    parser.add_argument("--library", required=True, type=pathlib.Path)
    parser.add_argument("--main", required=True, type=pathlib.Path)
    parser.add_argument("--sanitize", default="")
    arguments = parser.parse_args()
    if arguments.sanitize:
        print("skipped: a library with sanitizers is not for others to link")
        return SKIPPED
    compilers = [name for name in ("g++", "clang++") if shutil.which(name)]
    if not compilers:
        print("skipped: neither g++ nor clang++")
        return SKIPPED
    text = (ROOT / "tools" / "capi" / "README.md").read_text()
    page = re.search(r"```cpp\n(.*?)```", text, re.DOTALL)[1]
    lines = [line for line in page.splitlines() if line]
    if len(lines) > 10:
        sys.exit(f"the page's test: expected ten lines at most, found {len(lines)}")
    for compiler in compilers:
        with tempfile.TemporaryDirectory() as folder:
            check(compiler, arguments, page, pathlib.Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
