#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The least time of redistributions on two nodes, by a linear program that knows nothing of ours.

    pip install scipy
    cd tests/core/bounds
    python3 flow_optimum.py pair across partial > data/flow_optimum.txt
    python3 flow_optimum.py job > data/flow_jobs.txt

Several tensors are one program: what of them has the same owners and needers is one commodity.

Steady state, fractional: elements with the same owners and needers are one commodity, every needer
draws one unit of flow from the owners, relays may copy (an edge carries as much as the greatest of
the needers' flows on it), and what crosses a port in time T fits it. Partial sources: every
commodity chooses how much of it is folded at which root; the addends flow to the root, and relays
may fold (the same program backwards), then the root is the owner. (Several roots per element may be
faster yet.) No latencies. Partial sources take some minutes each.

The optimum is symmetric wherever the request is: a translation of the ranks that maps nodes to
nodes and the request to itself maps one optimum to another, and so does their average. One
commodity per orbit is solved, its loads are spread over the orbits of the ports.
"""

import argparse
import itertools
import math
import multiprocessing
import random
import typing

RANKS, NODE = 16, 8
NVLINK, NIC = 450e9, 50e9
BYTES = {"u8": 1, "bf16": 2, "f32": 4, "f64": 8}


class Side(typing.NamedTuple):
    mesh: tuple  # extent per axis
    ranks: tuple  # row-major
    placements: tuple  # per axis: "R", "P" or "S" and the dim


class Tensor(typing.NamedTuple):
    shape: tuple
    dtype: str
    source: Side
    target: Side


def held(shape, side, coordinate):
    """Per dim the interval that the rank at `coordinate` holds: pieces as large as the first."""
    spans = [(0, extent) for extent in shape]
    for size, placement, at in zip(side.mesh, side.placements, coordinate):
        if placement[0] != "S":
            continue
        dim = int(placement[1])
        lo, hi = spans[dim]
        piece = -((lo - hi) // size)
        spans[dim] = (min(hi, lo + at * piece), min(hi, lo + (at + 1) * piece))
    return spans


def commodities(job):
    """{(owners per addend, needers): bytes} of all tensors, ranks as bits."""
    found = {}
    for tensor in job:
        cuts = [{0, extent} for extent in tensor.shape]
        sides = []
        for side in (tensor.source, tensor.target):
            shards = []
            for rank, at in zip(side.ranks, itertools.product(*map(range, side.mesh))):
                spans = held(tensor.shape, side, at)
                addend = tuple(i for i, p in zip(at, side.placements) if p == "P")
                shards.append((rank, addend, spans))
                for cut, span in zip(cuts, spans):
                    cut.update(span)
            sides.append(shards)
        for block in itertools.product(*(itertools.pairwise(sorted(cut)) for cut in cuts)):
            inside = lambda spans: all(a <= lo and hi <= b
                                       for (lo, hi), (a, b) in zip(block, spans))
            owners = {}
            for rank, addend, spans in sides[0]:
                if inside(spans):
                    owners[addend] = owners.get(addend, 0) | 1 << rank
            needers = sum(1 << rank for rank, _, spans in sides[1] if inside(spans))
            key = (tuple(sorted(owners.values())), needers)
            if len(owners) == 1 and not needers & ~key[0][0]:
                continue
            size = BYTES[tensor.dtype] * math.prod(hi - lo for lo, hi in block)
            found[key] = found.get(key, 0) + size
    return found


def translated(bits, by):
    return sum(1 << (r ^ by) for r in range(RANKS) if bits >> r & 1)


def moved(key, by):
    return tuple(sorted(translated(bits, by) for bits in key[0])), translated(key[1], by)


def members(bits):
    return [r for r in range(RANKS) if bits >> r & 1]


class Program:
    """Variables are edges' loads; number 0 is T. Only ranks of the job send and receive."""

    def __init__(self, job):
        self.job = job
        self.variables = 1
        self.rows, self.upper, self.equal_rows, self.equal = [], [], [], []
        self.loads = {}  # port -> {variable: bytes}

    def variable_per(self, edges):
        numbers = range(self.variables, self.variables + len(edges))
        self.variables += len(edges)
        return dict(zip(edges, numbers))

    def multicast(self, sources, needers, amount):
        """Loads {(from, to): variable} of one unit from any of `sources` to each of `needers`.
        `amount`: None for one unit, or a variable."""
        edges = [(u, v) for u in self.job for v in self.job if u != v and v not in sources]
        load = self.variable_per(edges)
        for needer in needers:
            mine = [(u, v) for u, v in edges if u != needer]
            flow = self.variable_per(mine) if len(needers) > 1 else {e: load[e] for e in mine}
            for edge in mine if len(needers) > 1 else ():
                self.rows.append({flow[edge]: 1, load[edge]: -1})
                self.upper.append(0)
            for at in self.job:
                if at in sources:
                    continue
                row = {flow[e]: 1 for e in mine if e[1] == at}
                row.update({flow[e]: -1 for e in mine if e[0] == at})
                if at == needer and amount is not None:
                    row[amount] = -1
                self.equal_rows.append(row)
                self.equal.append(1 if at == needer and amount is None else 0)
        return load

    def charge(self, load, size, port_of):
        for (u, v), variable in load.items():
            kind = "nvlink" if u // NODE == v // NODE else "nic"
            for port in (port_of[u] + (kind, "out"), port_of[v] + (kind, "in")):
                row = self.loads.setdefault(port, {})
                row[variable] = row.get(variable, 0) + size

    def solve(self, orbit_sizes):
        for port, row in self.loads.items():
            rate = (NVLINK if port[1] == "nvlink" else NIC) / NIC
            row[0] = -rate * orbit_sizes[port[0]]
            self.rows.append(row)
            self.upper.append(0)

        # Here, so that --help does without.
        from scipy.optimize import linprog
        from scipy.sparse import coo_matrix

        def matrix(rows):
            entries = [(i, j, x) for i, row in enumerate(rows) for j, x in row.items()]
            i, j, x = zip(*entries)
            return coo_matrix((x, (i, j)), shape=(len(rows), self.variables)).tocsr()

        cost = [1] + [0] * (self.variables - 1)
        answer = linprog(cost, matrix(self.rows), self.upper, matrix(self.equal_rows), self.equal,
                         method="highs", options={"primal_feasibility_tolerance": 1e-10,
                                                  "dual_feasibility_tolerance": 1e-10})
        assert answer.status == 0, answer.message
        return answer.fun


def optimum_s(job):
    """Seconds; 0 where nothing moves."""
    found = commodities(job)
    if not found:
        return 0.0
    ranks = sorted({r for tensor in job for side in (tensor.source, tensor.target)
                    for r in side.ranks})
    group = [g for g in range(RANKS)
             if all(r ^ g in ranks for r in ranks)
             and all(found.get(moved(key, g)) == size for key, size in found.items())]
    least = [min(r ^ g for g in group) for r in range(RANKS)]
    port_of = [(r,) for r in least]
    orbit_sizes = {r: least.count(r) for r in set(least)}
    program = Program(ranks)
    done = set()
    scale = sum(found.values()) / RANKS
    for key in sorted(found):
        if key in done:
            continue
        orbit = {moved(key, g) for g in group}
        done |= orbit
        size = found[key] * len(orbit) / scale
        owners, needers = key
        if len(owners) == 1:
            lacking = members(needers & ~owners[0])
            program.charge(program.multicast(members(owners[0]), lacking, None), size, port_of)
            continue
        # Roots that a translation of this very commodity maps to one another are alike.
        still = [g for g in group if moved(key, g) == key]
        roots = [r for r in ranks if r == min(r ^ g for g in still)]
        share = program.variable_per([("share", r) for r in roots])
        program.equal_rows.append({x: 1 for x in share.values()})
        program.equal.append(1)
        for root in roots:
            amount = share[("share", root)]
            sources = [bits for bits in owners if not bits >> root & 1]
            program.charge(folding(program, sources, root, amount), size, port_of)
            lacking = [n for n in members(needers) if n != root]
            program.charge(program.multicast([root], lacking, amount), size, port_of)
    # In units of scale bytes and of a NIC's rate, so that the numbers are near one.
    return program.solve(orbit_sizes) * scale / NIC


def folding(program, sources, root, amount):
    """Loads of folding at `root` what each of `sources` (ranks as bits) holds: every addend flows
    from any of its holders, and an edge carries as much as the greatest of the flows on it."""
    edges = [(u, v) for u in program.job for v in program.job if u != v and u != root]
    load = program.variable_per(edges)
    for bits in sources:
        flow = program.variable_per(edges)
        for edge in edges:
            program.rows.append({flow[edge]: 1, load[edge]: -1})
            program.upper.append(0)
        for at in program.job:
            if bits >> at & 1:
                continue
            row = {flow[e]: 1 for e in edges if e[1] == at}
            row.update({flow[e]: -1 for e in edges if e[0] == at})
            if at == root:
                row[amount] = -1
            program.equal_rows.append(row)
            program.equal.append(0)
    return load


SHAPE, MESHES, ALL = (32, 8192, 4096), [(2, 8), (4, 4), (8, 2)], tuple(range(RANKS))


def alone(mesh, ranks, source, to_mesh, to_ranks, target):
    return [Tensor(SHAPE, "f32", Side(mesh, tuple(ranks), source),
                   Side(to_mesh, tuple(to_ranks), target))]


def pairs():
    words = ["R", "S0", "S1", "S2"]
    lists = list(itertools.product(words, repeat=2))
    for mesh in MESHES:
        for source, target in itertools.product(lists, repeat=2):
            yield alone(mesh, ALL, source, mesh, ALL, target)


def partial_sources():
    sources = [("P", "R"), ("R", "P"), ("P", "P"), ("P", "S0"), ("S0", "P"), ("S1", "P")]
    targets = [("R", "R"), ("S0", "R"), ("R", "S0"), ("S0", "S0"), ("S0", "S1")]
    for source, target in itertools.product(sources, targets):
        yield alone((2, 8), ALL, source, (2, 8), ALL, target)


def across_meshes():
    halves = [((8,), range(0, 8)), ((2, 4), range(0, 8)), ((4,), range(0, 4)),
              ((4,), range(6, 10)), ((2,), range(0, 2)), ((2, 2), (0, 1, 8, 9))]
    others = [((8,), range(8, 16)), ((4,), range(8, 12)), ((4, 4), range(0, 16)),
              ((2,), range(14, 16)), ((6,), range(2, 8))]
    words = ["R", "S1", "S0"]
    for (mesh, ranks), (to_mesh, to_ranks) in itertools.product(halves, others):
        words_to = ["R"] if to_mesh == (6,) else words
        for first, last in itertools.product(words, words_to):
            source = (first,) + ("S2",) * (len(mesh) - 1)
            target = (last,) + ("R",) * (len(to_mesh) - 1)
            yield alone(mesh, ranks, source, to_mesh, to_ranks, target)


def drawn_side(rng, ranks, dims):
    """A mesh of all ranks, of those of one node, or of any of them in any order."""
    some = rng.choice([ranks] * 3 + [[r for r in ranks if r // NODE == node] for node in (0, 1)])
    if len(ranks) < RANKS and rng.random() < 0.4:
        some = rng.sample(some, rng.randint(1, len(some)))
    meshes = [(len(some),)]
    meshes += [(n, len(some) // n) for n in range(2, len(some)) if len(some) % n == 0]
    return placed(rng, rng.choice(meshes), tuple(some), dims)


def placed(rng, mesh, ranks, dims):
    words = ["R"] + [f"S{dim}" for dim in range(dims)]
    return Side(mesh, ranks, tuple(rng.choice(words) for _ in mesh))


# Of all tensors about as many elements, so that none decides alone.
EVEN = [(1 << 22,), (2048, 2048), (512, 8192), (64, 256, 256)]
UNEVEN = [(1 << 22,), (4_000_003,), (2048, 2048), (1999, 2053), (200, 131, 150)]
NODES = [(4, 4), (3, 3), (2, 2), (2, 4), (4, 1), (5, 3), (2, 3), (3, 5), (6, 2)]


def drawn_jobs(count=200):
    """Of some ranks, differently many on the nodes, in any order, cut unevenly; each fourth job on
    full nodes and even, for symmetry keeps such a program small."""
    rng = random.Random(35)
    made = 0
    while made < count:
        full = made % 4 == 3
        here, there = (NODE, NODE) if full else rng.choice(NODES)
        ranks = [*range(here), *range(NODE, NODE + there)]
        job = []
        for _ in range(rng.randint(2, 4)):
            shape = rng.choice(EVEN if full else UNEVEN)
            source, target = (drawn_side(rng, ranks, len(shape)) for _ in range(2))
            if rng.random() < 0.3:
                target = placed(rng, source.mesh, source.ranks, len(shape))
            job.append(Tensor(shape, rng.choice(["u8", "bf16", "bf16", "f32"]), source, target))
        if 0 < len(commodities(job)) <= (200 if full else 100):
            made += 1
            yield job


def text_of(side):
    return " ".join(["x".join(map(str, side.mesh)), ",".join(map(str, side.ranks)),
                     ",".join(f"S({w[1]})" if w[0] == "S" else w for w in side.placements)])


def line_of(item):
    kind, job = item
    ps = optimum_s(job) * 1e12
    if ps == 0:
        return ""
    tensors = [f"{text_of(tensor.source)} {text_of(tensor.target)}" for tensor in job]
    if kind == "job":
        tensors = [f"{','.join(map(str, tensor.shape))} {tensor.dtype} {text}"
                   for tensor, text in zip(job, tensors)]
    return f"{kind} {' '.join(tensors)} {ps:.1f}"


KINDS = {"pair": pairs, "partial": partial_sources, "across": across_meshes, "job": drawn_jobs}
HEADER = """\
# Written by tests/core/bounds/flow_optimum.py; do not edit.
# The least time of a fractional steady state on two nodes of 8 GPUs, 450 GB/s NVLink and 50 GB/s
# NIC each way per GPU, without latencies. Per line: the kind; per tensor the source's mesh, ranks
# and placements, and the destination's; picoseconds. Tensors of jobs begin with their shape and
# type, others are f32[32,8192,4096]."""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="+", choices=KINDS, metavar="|".join(KINDS))
    print(HEADER)
    items = [(kind, job) for kind in parser.parse_args().kinds for job in KINDS[kind]()]
    with multiprocessing.Pool(2) as pool:
        for line in pool.imap(line_of, items):
            if line:
                print(line, flush=True)


if __name__ == "__main__":
    main()
