# SPDX-License-Identifier: BSD-3-Clause
"""Finds the build tree for the scripts that test it: the one that RESHARD_BUILD names, else
build/release. Its configuration is read from CMake's cache."""

import os
import pathlib
import re

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


CMAKE = cached("CMAKE_COMMAND") or "cmake"
SANITIZE = cached("RESHARD_SANITIZE")
