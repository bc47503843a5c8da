#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two builds of the program must print the same bytes: plans, timelines, data digests, Perfetto
files.

Prints one digest over everything.
"""

import argparse
import hashlib
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TENSOR = ["--shape", "12,10,7"]
TRACES = [f"traces/{path.name}" for path in sorted((ROOT / "traces").glob("*.jsonl"))]
COMMANDS = [["replay", trace, "--data-budget", "64MiB", "--json"] for trace in TRACES]
COMMANDS += [["replay", trace, "--data", "proof", "--perfetto", "-"] for trace in TRACES]
COMMANDS += [
    [
        "sweep",
        "--mesh",
        "2x3",
        "--shape",
        "7,5",
        "--dtype",
        dtype,
        "--placements",
        "R,S(0),S(1),P(sum),P(max)",
        "--json",
    ]
    for dtype in ("f32", "i16")
]
for planner in ("rule", "graph", "p2p", "hybrid", "packed", "auto"):
    for dtype, source, target in [
        ("f16", "P(sum)S(1)", "S(0)R"),
        ("bf16", "P(avg)R", "RS(2)"),
        ("f64", "_S(0,2)S(0)", "S(1)S(2)"),
        ("c64", "RS(0)", "P(sum)R"),
        ("i32", "P(bxor)P(bxor)", "RR"),
    ]:
        request = [
            "--mesh",
            "2x3",
            *TENSOR,
            "--dtype",
            dtype,
            "--from",
            source,
            "--to",
            target,
            "--planner",
            planner,
        ]
        COMMANDS += [
            ["plan", *request, "--emit", "plan"],
            ["plan", *request, "--json"],
            ["simulate", *request, "--json"],
            ["simulate", *request, "--perfetto", "-"],
        ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs=2, metavar="PROGRAM")
    programs = parser.parse_args().programs
    total, different = hashlib.sha256(), 0
    for command in COMMANDS:
        results = []
        for program in programs:
            done = subprocess.run(
                [pathlib.Path(program).resolve(), *command],
                cwd=ROOT,
                capture_output=True,
                timeout=600,
            )
            # Progress depends on the machine.
            said = [line for line in done.stderr.splitlines() if b" s so far" not in line]
            results.append((done.returncode, done.stdout, b"\n".join(said)))
        if results[0] != results[1]:
            different += 1
            print("DIFFERENT: reshard " + " ".join(command))
        if results[0][0] not in (0, 2):
            sys.exit(
                f"compare: reshard {' '.join(command)} ends with {results[0][0]}: "
                f"{results[0][2].decode()}"
            )
        for part in results[0][1:]:
            total.update(part)
    print(
        f"compare: {len(COMMANDS) - different} outputs equal, {different} different; "
        f"sha256 {total.hexdigest()}"
    )
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
