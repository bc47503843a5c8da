#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every shared library that was built exports exactly the names of its committed list, and exactly
what its headers declare.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import built  # noqa: E402

# library -> its list and headers
LIBRARIES = {
    "reshard": (
        "reshard",
        ["reshard.h", "reshard_program.h", "reshard_buffers.h", "reshard_rings.h"],
    ),
    "reshard_mpi": ("reshard_mpi", ["reshard_mpi.h"]),
    "reshard_mpich": ("reshard_mpi", ["reshard_mpi.h"]),
    "reshard_nccl": ("reshard_nccl", ["reshard_nccl.h"]),
}


def problems_of(library, names, headers):
    done = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True,
                          text=True)  # fmt: skip
    shown = {line.split()[2] for line in done.stdout.splitlines() if line.split()[1] != "A"}
    listed = set((built.ROOT / f"tests/capi/{names}.symbols").read_text().split())
    declared = {
        name
        for header in headers
        for name in re.findall(r"^RESHARD_API .*?(\w+)\(",
                               (built.ROOT / "tools/capi" / header).read_text(), re.MULTILINE)
    }  # fmt: skip
    plain = {name.split("@")[0] for name in listed}
    print(f"{library.name}: {len(shown)} names")
    yield from (f"shown but not listed: {name}" for name in sorted(shown - listed))
    yield from (f"listed but not shown: {name}" for name in sorted(listed - shown))
    yield from (f"declared but not listed: {name}" for name in sorted(declared - plain))
    yield from (f"listed but not declared: {name}" for name in sorted(plain - declared))


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    if shutil.which("nm") is None:
        print("skipped: no nm (apt install binutils)")
        return built.SKIPPED
    problems = []
    for name, (names, headers) in LIBRARIES.items():
        library = built.BUILD / f"lib{name}.so.0"
        if library.exists():
            problems += problems_of(library, names, headers)
    print("\n".join(problems) if problems else "all as listed and declared")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
