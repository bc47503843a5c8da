#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Random strided copies between small shards, right and wrong, transposed too: `check` must call
wrong or missing every element that is, and nothing in a copy that is right.

    drawn_copies.py --reshard PROGRAM [--seeds 1-60]

Each seed is a file of 40 tensors with one copy each. What a copy does is worked out here, element
by element.
"""

import argparse
import itertools
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import built  # noqa: E402
from drawn_models import numbers_in  # noqa: E402

TENSORS = 40


def row_major(shape):
    return [math.prod(shape[d + 1 :]) for d in range(len(shape))]


def places(offset, extents, strides):
    return [offset + sum(i * s for i, s in zip(index, strides))
            for index in itertools.product(*map(range, extents))]


class Side:
    """A tensor cut along a dim, its dims in some order in memory."""

    def __init__(self, rng, shape):
        self.shape, self.dim = shape, rng.randrange(len(shape))
        n = rng.choice((1, 2, 3))
        self.ranks = n if shape[self.dim] % n == 0 else 1
        self.order = list(range(len(shape)))
        if rng.random() < 0.3:
            rng.shuffle(self.order)

    def elements(self, rank):
        """Their numbers by place."""
        own = list(self.shape)
        own[self.dim] //= self.ranks
        strides = row_major(self.shape)
        first = rank * own[self.dim] * strides[self.dim]
        return places(first, [own[d] for d in self.order], [strides[d] for d in self.order])

    def line(self, side, name):
        return {"side": side, "tensor": name, "mesh": str(self.ranks),
                "ranks": f"0-{self.ranks - 1}", "placements": f"S({self.dim})",
                "order": self.order}


def drawn_view(rng, size):
    for _ in range(50):
        extents = [rng.randint(1, 6) for _ in range(rng.choice((1, 1, 2, 2, 3)))]
        strides = [rng.randint(1, 8) for _ in extents]
        if rng.random() < 0.6:
            wide = rng.random() < 0.6
            strides = [s * rng.choice((1, 1, 2)) if wide else s for s in row_major(extents)]
            strides[-1] = 1
        last = max(places(0, extents, strides))
        if last < size:
            return rng.randrange(size - last), extents, strides
    return 0, [1], [1]


def drawn_ends(rng, source, target):
    """(from, to): views of as many elements, the latter of none twice."""
    while True:
        a, b = drawn_view(rng, source), drawn_view(rng, target)
        if rng.random() < 0.5 and max(places(*a)) < target:
            b = a
        count = math.prod(a[1])
        if math.prod(b[1]) != count:
            b = (b[0], [count], [1])
        into = places(*b)
        if max(into) < target and len(set(into)) == count:
            return a, b


class Drawn:
    """A tensor, its sides, one copy, and what is wrong then: sets of (rank, element)."""

    def __init__(self, rng, name):
        self.shape = [rng.randint(1, 6) for _ in range(rng.choice((1, 2, 2, 2, 3)))]
        source, target = Side(rng, self.shape), Side(rng, self.shape)
        ranks = rng.randrange(source.ranks), rng.randrange(target.ranks)
        has, wants = source.elements(ranks[0]), target.elements(ranks[1])
        ends = drawn_ends(rng, len(has), len(wants))
        pairs = list(zip(*(places(*end) for end in ends)))
        self.wrong = {(ranks[1], wants[q]) for p, q in pairs if has[p] != wants[q]}
        written = {(ranks[1], wants[q]) for _, q in pairs}
        self.missing = {(rank, e) for rank in range(target.ranks)
                        for e in target.elements(rank)} - written
        end = lambda rank, view: {"rank": rank, "buffer": name,
                                  **dict(zip(("offset", "extents", "strides"), view))}
        self.lines = ({"tensor": name, "shape": self.shape, "dtype": "bf16"},
                      source.line("from", name), target.line("to", name),
                      {"from": end(ranks[0], ends[0]), "to": end(ranks[1], ends[1])})

    def fault(self, found):
        """`found`: kind of finding -> (rank, element)."""
        missing = found.pop("missing", set())
        wrong = set().union(*found.values())
        if missing != self.missing:
            return f"{len(self.missing)} missing, found {len(missing)}"
        # Of elements in another order, some of a box can be right.
        if not self.wrong <= wrong or (wrong and not self.wrong):
            return f"{len(self.wrong)} wrong, found {len(wrong & self.wrong)} of them"
        return ""


def check(reshard, seed, path):
    """(faults, wrong copies, right ones)."""
    rng = random.Random(f"copies/{seed}")
    drawn = {f"t{i}": Drawn(rng, f"t{i}") for i in range(TENSORS)}
    lines = [{"reshard_check": 1}]
    lines += [each.lines[k] for k in range(4) for each in drawn.values()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = subprocess.run([reshard, "check", path, "--json"], capture_output=True, text=True)
    if not done.stdout:
        return [f"exit {done.returncode}: {done.stderr}"], 0, 0
    found = {name: {} for name in drawn}
    for finding in json.loads(done.stdout)["findings"]:
        name = finding["tensor"]
        for box in finding["boxes"]:
            strides = row_major(drawn[name].shape)
            first = sum(i * s for i, s in zip(box["lo"], strides))
            own = found[name].setdefault(finding["kind"], set())
            own |= {(box["rank"], e) for e in places(first, box["extents"], strides)}
    faults = [f"{each.fault(found[name])}: " + " ".join(map(json.dumps, each.lines))
              for name, each in drawn.items() if each.fault(dict(found[name]))]
    wrong = sum(bool(each.wrong) for each in drawn.values())
    return faults, wrong, len(drawn) - wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reshard", default=built.RESHARD, type=pathlib.Path)
    parser.add_argument("--seeds", default="1-60", type=numbers_in, metavar="FIRST-LAST")
    given = parser.parse_args()
    totals = [0, 0, 0]
    with tempfile.TemporaryDirectory() as folder:
        for seed in given.seeds:
            faults, *counts = check(given.reshard, seed, pathlib.Path(folder) / "drawn.copies")
            for fault in faults:
                print(f"FAILED seed {seed}: {fault}")
            totals = [a + b for a, b in zip(totals, [len(faults), *counts])]
    print(f"drawn_copies: {totals[1]} wrong copies, {totals[2]} right ones, {totals[0]} failed")
    return 1 if totals[0] or not all(totals[1:]) else 0


if __name__ == "__main__":
    sys.exit(main())
