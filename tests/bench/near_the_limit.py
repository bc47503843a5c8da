#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How close to the bound plans are: the geometric mean and the worst ratio of `auto` to the bound,
over all pairs of placements, compared with their targets; and whether another planner is ever
faster.

Every plan is proved. Exits with 1 if a target is missed. All rows take some minutes, those of
--quick seconds.
"""

import argparse
import csv
import io
import itertools
import json
import math
import pathlib
import resource
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import built  # noqa: E402

LARGE = "32,8192,4096"
ALL = "R,S(0),S(1),S(2)"
H100 = "dgx-h100:2"
TWO_NODES = ("2x8", "4x4", "8x2")

# Name, mesh, shape, topology, placements, greatest mean, greatest worst; quick.
SWEEPS = [
    *((f"4 GiB on {m}", m, LARGE, H100, ALL, 1.02, 1.08, m == "4x4") for m in TWO_NODES),
    *(
        (f"P(sum) sources on {m}", m, LARGE, H100, ALL + ",P(sum)", 1.035, 1.10, False)
        for m in TWO_NODES
    ),
    *((f"A100, {m}", m, LARGE, "dgx-a100:2", ALL, 1.02, 1.08, False) for m in TWO_NODES),
    ("256 MiB", "4x4", "32,8192,256", H100, ALL, 1.07, 1.8, True),
    ("16 MiB", "4x4", "32,512,256", H100, ALL, 1.15, 1.8, True),
    ("1 MiB", "4x4", "32,128,64", H100, ALL, 1.06, 1.8, True),
    ("64 KiB", "4x4", "32,32,16", H100, ALL, 1.01, 1.8, True),
    ("RTX PRO 6000", "4x2", LARGE, "rtx-pro-6000-8", ALL, 1.10, None, True),
    ("RTX PRO 6000, one NIC", "4x4", LARGE, "rtx-pro-6000-8:2,nics=1", ALL, 1.10, None, False),
    ("oversubscribed", "8x4", LARGE, "dgx-h100:4,oversubscription=2", ALL, 1.10, None, False),
]

# Name; source; destination with its ranks; nodes. Each within 1.05.
ACROSS = [
    ("S 8 -> R 8", "8 S(0)", "8 8-15 R", 2),
    ("R 8 -> S 8", "8 R", "8 8-15 S(0)", 2),
    ("S 8 -> R 24", "8 S(0)", "24 8-31 R", 4),
    ("P 8 -> R 8", "8 P(sum)", "8 8-15 R", 2),
    ("S 64 -> R on 16 x 4", "64 S(1)", "16x4 64-127 S(1)R", 16),
    ("S 64 -> 4 replicas", "64 S(1)", "4x16 64-127 RS(1)", 16),
]

# Name, mesh, nodes, seconds, MiB.
SCALE = [("1,024 ranks", "32x32", 128, 3, 2048), ("16,384 ranks", "128x128", 2048, 6, 2048)]


class Figures:
    def __init__(self, reshard):
        self.reshard = reshard
        self.missed = 0

    def say(self, name, text, reached):
        self.missed += not reached
        print(f"{name:24} {text}{'' if reached else '   MISSED'}", flush=True)

    def run(self, *options):
        return subprocess.run(
            [self.reshard, *options], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ).stdout.decode()

    def sweep(self, name, mesh, shape, topology, placements, mean, worst):
        words = ["--mesh", mesh, "--shape", shape, "--topology", topology]
        words += ["--placements", placements]
        rows = self.rows(words, "ideal", "auto")
        if "P" in placements:
            rows = [row for row in rows if partial_source(row)]
        bounded = [row for row in rows if row["bound_ps"] != "0"]
        ratios = [int(row["time_ps"]) / int(row["bound_ps"]) for row in bounded]
        geometric = math.exp(sum(map(math.log, ratios)) / len(ratios))
        asked = f"{mean}" + (f", {worst}" if worst else "")
        self.say(
            name,
            f"{len(ratios)} pairs, mean {geometric:.4f}, worst {max(ratios):.4f} (asked {asked})",
            geometric <= mean and (not worst or max(ratios) <= worst),
        )

    def rows(self, words, transport, *planners):
        for planner in planners:
            words = [*words, "--planner", planner]
        text = self.run("sweep", *words, "--transport", transport, "--csv", "-")
        return list(csv.DictReader(io.StringIO(text)))

    def never_slower(self, transport):
        pairs, slower = 0, 0
        shapes = (LARGE, "32,512,256", "32,128,64", "32,32,16")
        for mesh, shape in itertools.product(TWO_NODES, shapes):
            words = ["--mesh", mesh, "--shape", shape, "--topology", H100]
            words += ["--placements", ALL + ",P(sum)"]
            times = {}
            for row in self.rows(words, transport):
                if row["time_ps"]:
                    pair = times.setdefault((row["from"], row["to"]), {})
                    pair[row["planner"]] = int(row["time_ps"])
            pairs += len(times)
            slower += sum(pair["auto"] > min(pair.values()) for pair in times.values())
        text = f"slower on {slower} of {pairs} pairs (asked 0)"
        self.say(f"auto, {transport}", text, slower == 0)

    def across(self, name, source, destination, nodes):
        mesh, held = source.split()
        to_mesh, ranks, needed = destination.split()
        words = ["--mesh", mesh, "--from", held, "--shape", LARGE]
        words += ["--to-mesh", to_mesh, "--to-ranks", ranks, "--to", needed]
        words += ["--topology", f"dgx-h100:{nodes}", "--transport", "ideal"]
        report = json.loads(self.run("simulate", *words, "--data", "proof", "--json"))
        ratio = report["ratio_to_bound"]
        self.say(name, f"{ratio:.4f} (asked 1.05)", ratio <= 1.05)

    def scale(self, name, mesh, nodes, seconds, mib):
        words = ["--mesh", mesh, "--from", "S(0)S(1)", "--to", "S(1)S(0)", "--shape", "32768,32768"]
        started = time.monotonic()
        self.run("simulate", *words, "--topology", f"dgx-h100:{nodes}", "--data", "proof")
        took = time.monotonic() - started
        # Of the greatest child so far: the largest request comes last.
        used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        text = f"{took:.1f} s, at most {used:.0f} MiB (asked {seconds} s, {mib} MiB)"
        self.say(name, text, took <= seconds and used <= mib)


def partial_source(row):
    first, rest = row["from"][:6], row["from"][6:]
    return first == "P(sum)" and "P" not in rest + row["to"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reshard", default=built.RESHARD)
    parser.add_argument("--quick", action="store_true", help="the rows of seconds, without clocks")
    options = parser.parse_args()
    figures = Figures(options.reshard)
    for *row, quick in SWEEPS:
        if quick or not options.quick:
            figures.sweep(*row)
    for row in ACROSS[:4] if options.quick else ACROSS:
        figures.across(*row)
    for transport in ("ideal", "nccl") if not options.quick else ():
        figures.never_slower(transport)
    for row in SCALE if not options.quick else ():
        figures.scale(*row)
    sys.exit(1 if figures.missed else 0)


if __name__ == "__main__":
    main()
