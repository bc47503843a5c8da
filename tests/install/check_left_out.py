#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A CUDA Toolkit, an NCCL or an MPI that is too old or broken is left out with one line, and
everything else is configured.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import built  # noqa: E402



def configured(cmake, build, environment, *options):
    done = subprocess.run(
        [cmake, "-S", built.ROOT, "-B", build, "-G", "Ninja", "-DRESHARD_BUILD_TESTS=OFF",
         "-DRESHARD_BUILD_BENCH=OFF", *options],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=240,
    )  # fmt: skip
    if done.returncode != 0:
        sys.exit(f"left_out: {options} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return [line for line in done.stdout.splitlines() if line.startswith("-- reshard")]


def expect(lines, *words):
    if not any(all(word in line for word in words) for line in lines):
        sys.exit(f"left_out: expected a line with {words}, found {lines}")


def program(path, text):
    path.write_text(text)
    path.chmod(0o755)


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        base = pathlib.Path(folder)
        broken = base / "bin"
        broken.mkdir()
        for name in ("mpicc", "mpicc.openmpi", "mpicc.mpich"):
            program(broken / name, "#!/bin/sh\necho gcc -I/nowhere -L/nowhere -lmpi_that_is_not\n")
        program(broken / "nvcc", "#!/bin/sh\nexit 1\n")
        in_front = {"PATH": f"{broken}:{os.environ['PATH']}", "CUDACXX": str(broken / "nvcc")}
        lines = configured(built.CMAKE, base / "broken", in_front)
        expect(lines, "no MPI backend", "works")
        expect(lines, "no CUDA backend")
        expect(lines, "no NCCL backend")

        lines = configured(built.CMAKE, base / "whole", {}, "-DRESHARD_MPI=OFF")
        expect(lines, "no MPI backend", "RESHARD_MPI=OFF")
        if any("NCCL backend, with" in line for line in lines):
            old = ("-DRESHARD_MPI=OFF", "-DRESHARD_LEAST_NCCL=99")
            expect(configured(built.CMAKE, base / "old_nccl", {}, *old), "no NCCL", "99 or newer")
        if any("CUDA backend, with" in line for line in lines):
            old = ("-DRESHARD_MPI=OFF", "-DRESHARD_LEAST_CUDA=99")
            expect(configured(built.CMAKE, base / "old_cuda", {}, *old), "no CUDA", "99 or newer")
        else:
            print("left_out: no CUDA Toolkit here: that of one too old was not tried")
    print("left_out: what is old or broken is left out")


if __name__ == "__main__":
    main()
