# SPDX-License-Identifier: BSD-3-Clause
"""Finds the build tree for the scripts that test it: the one that RESHARD_BUILD names, else
build/release. Its configuration is read from CMake's cache."""

import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("RESHARD_BUILD", ROOT / "build/release")).resolve()
RESHARD = BUILD / "reshard"
LIBRARY = BUILD / "libreshard.so.0"
SKIPPED = 77  # the exit code by which CTest knows a test that could not run here


def cached(name):
    """The value of an entry of CMake's cache; empty without one."""
    cache = BUILD / "CMakeCache.txt"
    found = cache.exists() and re.search(rf"^{name}:\w+=(.*)$", cache.read_text(), re.MULTILINE)
    return found[1] if found else ""


def values_of(reshard, *command):
    """The values of the option that ends the command: the program names them when it refuses
    another."""
    done = subprocess.run([reshard, *command, "?"], capture_output=True, text=True)
    (named,) = re.findall("expected one of (.*), found", done.stderr)
    return named.replace(",", "").split()


CMAKE = cached("CMAKE_COMMAND") or "cmake"
SANITIZE = cached("RESHARD_SANITIZE")
