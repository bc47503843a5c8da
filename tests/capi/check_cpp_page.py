#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The C++ test in tools/capi/README.md, unchanged, and programs/test_hpp.cpp compile as C++17
without warnings with every available compiler; the page's test passes and has ten lines.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import built  # noqa: E402

FLAGS = ["-std=c++17", "-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror"]


def run(*command):
    done = subprocess.run(
        [str(c) for c in command], capture_output=True, text=True, timeout=240, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(str(c) for c in command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def check(compiler, page, folder):
    source, program = folder / "rows_to_columns.cpp", folder / "rows_to_columns"
    source.write_text(page)
    flags = [*FLAGS, f"-I{built.BUILD}/include"]
    linked = [built.LIBRARY, f"-Wl,-rpath,{built.LIBRARY.parent}", "-lCatch2WithMain"]
    run(compiler, *flags, source, "-o", program, *linked)
    out = run(program)
    if "All tests passed (1 assertion in 1 test case)" not in out:
        sys.exit(f"the page's test by {compiler}: found\n{out}")
    run(compiler, *flags, "-fsyntax-only", built.ROOT / "tests/capi/programs/test_hpp.cpp")
    print(f"C++17 by {compiler}: no warning, and the page's test passes")


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    if built.SANITIZE:
        print("skipped: a library with sanitizers is not for others to link")
        return built.SKIPPED
    compilers = [name for name in ("g++", "clang++") if shutil.which(name)]
    if not compilers:
        print("skipped: neither g++ nor clang++")
        return built.SKIPPED
    text = (built.ROOT / "tools" / "capi" / "README.md").read_text()
    page = re.search(r"```cpp\n(.*?)```", text, re.DOTALL)[1]
    lines = [line for line in page.splitlines() if line]
    if len(lines) > 10:
        sys.exit(f"the page's test: expected ten lines at most, found {len(lines)}")
    for compiler in compilers:
        with tempfile.TemporaryDirectory() as folder:
            check(compiler, page, pathlib.Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
