#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A project that uses reshard through add_subdirectory gets the library's target, but no tests,
benchmarks or install rules that it did not ask for.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import built  # noqa: E402

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(outer C CXX)
enable_testing()
add_subdirectory(%s reshard)
file(WRITE ${CMAKE_BINARY_DIR}/main.c
  "#include <reshard/reshard.h>\\n"
  "int main(void) { return reshard_api_version() != RESHARD_API_VERSION; }\\n")
add_executable(outer ${CMAKE_BINARY_DIR}/main.c)
target_link_libraries(outer PRIVATE reshard::reshard)
if(RESHARD_BUILD_TESTS OR RESHARD_BUILD_BENCH OR RESHARD_INSTALL OR TARGET test_layout)
  message(FATAL_ERROR "tests, benchmarks or installation are on")
endif()
"""


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        sys.exit(
            f"subdirectory: {' '.join(str(c) for c in command)} ended with {done.returncode}\n"
            f"{done.stdout}{done.stderr}"
        )
    return done.stdout


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        base = pathlib.Path(folder)
        (base / "CMakeLists.txt").write_text(PROJECT % built.ROOT)
        run(
            built.CMAKE,
            "-S",
            base,
            "-B",
            base / "build",
            "-G",
            "Ninja",
            "-DRESHARD_CUDA=OFF",
            "-DRESHARD_MPI=OFF",
        )
        # The rule that compiles the outer program finds the header; building all of the library
        # belongs to other tests.
        run(built.CMAKE, "--build", base / "build", "--target", "CMakeFiles/outer.dir/main.c.o")
        if "Total Tests: 0" not in run("ctest", "-N", "--test-dir", base / "build"):
            sys.exit("subdirectory: the outer project has tests of ours")
    print("subdirectory: configured, with the target reshard::reshard and no tests")
    return 0


if __name__ == "__main__":
    sys.exit(main())
