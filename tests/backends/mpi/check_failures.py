#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What happens to all processes when one of them fails: they end soon, and report its reason.

check_failures.py PROGRAM MPIRUN [FLAG...]     PROGRAM is mpi_failing
"""

import os
import subprocess
import sys
import time

PROGRAM, MPIRUN = sys.argv[1], sys.argv[2:]
# how, processes, exit codes (None: any but 0, as launchers differ in which process's they pass on),
# what one line says, how often at least, seconds at most
CASES = [
    ("world", 3, {0}, "3 processes", 1, 30),
    (
        "not_started",
        3,
        {2},
        "InputError: mpi: expected a process for rank 8, found 3 processes",
        1,
        30,
    ),
    ("throws", 3, None, "InputError: no data on this process", 1, 15),
    ("absent", 3, None, "BackendError: MPI: the start of a run failed on rank", 1, 20),
    ("leaves", 3, None, "BackendError: MPI: the start of a run failed on rank", 0, 20),
]
problems = []


def run(command, environment, limit_s):
    begin = time.monotonic()
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env={**os.environ, **environment},
            check=False,
            timeout=limit_s + 30,
        )
    except subprocess.TimeoutExpired:
        return None, "", time.monotonic() - begin
    return done.returncode, done.stdout + done.stderr, time.monotonic() - begin


def expect(name, condition, output):
    if not condition:
        problems.append(name)
        print(f"FAILED: {name}\n{output}")


for how, processes, codes, line, times, limit_s in CASES:
    code, output, seconds = run([*MPIRUN, "-np", str(processes), PROGRAM, how], {}, limit_s)
    print(f"{how}: exit {code} after {seconds:.1f} s")
    expect(
        f"{how}: exit code {code}, expected {codes or 'any but 0'}",
        code in codes if codes else code not in (0, None),
        output,
    )
    expect(f"{how}: {seconds:.1f} s, at most {limit_s}", seconds < limit_s, output)
    expect(f"{how}: says {line!r}", output.count(line) >= times, output)

# A process that never calls MPI_Init.
code, output, seconds = run(
    [*MPIRUN, "-np", "1", PROGRAM, "world", ":", "-np", "1", "sleep", "60"], {}, 30
)
print(f"never begins: exit {code} after {seconds:.1f} s")
expect(
    f"never begins: exit {code} after {seconds:.1f} s",
    code not in (0, None) and seconds < 30 and "MPI_Init did not end within" in output,
    output,
)

# Without a launcher there is a single process; with another MPI's there are none that it connects.
code, output, _ = run([PROGRAM, "world"], {}, 30)
expect("a world of one without mpirun", code == 0 and "1 processes" in output, output)
code, output, _ = run([PROGRAM, "world"], {"RESHARD_MPI": "lam"}, 30)
expect(
    "an MPI that there is not",
    code == 2 and "RESHARD_MPI: expected openmpi or mpich, found 'lam'" in output,
    output,
)

print(f"{len(problems)} problems")
sys.exit(1 if problems else 0)
