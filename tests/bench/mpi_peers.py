#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares reshard's MPI backend with other software that redistributes arrays over MPI, mpi4py-fft
and ScaLAPACK, all on Open MPI, alternating.

    cmake --build build/release --target mpi_peer_reshard mpi_peer_scalapack
    tests/bench/mpi_peers.py [--build build/release] [--ranks 4] [--size 4096] [--runs 9]
                             [--repetitions 9]

mpi_peer_scalapack is a target if libscalapack-openmpi-dev is installed.

Every program times S(0) -> S(1) of a square float32 array (barrier, transfer, slowest rank), warm,
and checks every element. A run prints the median of its repetitions; the table shows the median
over the runs. A peer that is not installed is left out, with a line that says so.
"""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"  # Debian's, which Debian's mpi4py-fft belongs to


def programs(build):
    """Name -> (command, why it is missing or None)."""

    def built(name, *arguments):
        path = build.resolve() / name
        return [str(path), *arguments], None if path.exists() else f"{path} is not built"

    has_fft = (
        subprocess.run(
            [PYTHON, "-c", "import mpi4py_fft"], capture_output=True, check=False
        ).returncode
        == 0
    )
    scalapack_missing = "not built (apt install libscalapack-openmpi-dev, then cmake again)"
    rows, why = built("mpi_peer_scalapack", "rows")
    columns, _ = built("mpi_peer_scalapack", "columns")
    return {
        "reshard": built("mpi_peer_reshard"),
        "reshard, MPI's transport": built("mpi_peer_reshard", "own"),
        "mpi4py-fft": (
            [PYTHON, str(HERE / "mpi_peer_fft.py")],
            None if has_fft else "not installed (apt install python3-mpi4py-fft)",
        ),
        "ScaLAPACK, rows to columns": (rows, why and scalapack_missing),
        "ScaLAPACK, columns to rows": (columns, why and scalapack_missing),
    }


def timed_us(command, options):
    environment = {
        **os.environ,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    script = 2 if command[0] == PYTHON else 1
    line = [
        options.mpirun,
        "-np",
        str(options.ranks),
        "--oversubscribe",
        *command[:script],
        str(options.size),
        str(options.repetitions),
        *command[script:],
    ]
    done = subprocess.run(
        line, capture_output=True, text=True, env=environment, check=False, timeout=600
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(line)}\n{done.stdout}{done.stderr}")
    return float(done.stdout.split()[-1])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--build", type=pathlib.Path, default=HERE.parent.parent / "build" / "release"
    )
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument(
        "--size", type=int, default=4096, help="rows and columns; a multiple of the ranks"
    )
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument(
        "--mpirun", default=shutil.which("mpirun.openmpi") or shutil.which("mpirun") or "mpirun"
    )
    options = parser.parse_args()
    commands = {}
    for name, (command, missing) in programs(options.build).items():
        if missing:
            print(f"left out: {name}: {missing}")
        else:
            commands[name] = command
    if "reshard" not in commands:
        sys.exit(2)
    times = {name: [] for name in commands}
    for _ in range(options.runs):
        for name, command in commands.items():
            times[name].append(timed_us(command, options))
    ours = statistics.median(times["reshard"])
    moved = options.size * options.size * 4
    print(
        f"{options.ranks} ranks, {options.size} x {options.size} f32, S(0) -> S(1), {options.runs} "
        f"alternating runs of {options.repetitions}, {os.cpu_count()} cores"
    )
    print(f"{'':28}{'median':>12}{'fastest':>12}{'slowest':>12}{'tensor':>12}{'to reshard':>12}")
    for name, all_us in times.items():
        median = statistics.median(all_us)
        print(
            f"{name:28}{median:9.0f} us{min(all_us):9.0f} us{max(all_us):9.0f} us"
            f"{moved / median / 1e3:7.2f} GB/s{median / ours:12.2f}"
        )


if __name__ == "__main__":
    main()
