#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The least time of redistributions on two nodes, by a linear program that knows nothing of ours.

    pip install scipy
    python3 tests/core/bounds/flow_optimum.py > tests/core/bounds/data/flow_optimum.txt

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
import multiprocessing

SHAPE = (32, 8192, 4096)
TENSOR_BYTES = 4 * SHAPE[0] * SHAPE[1] * SHAPE[2]
RANKS, NODE = 16, 8
NVLINK, NIC = 450e9, 50e9
BLOCKS = 16  # of a dim: as many pieces as any layout here cuts


def coordinates(mesh):
    return list(itertools.product(*(range(n) for n in mesh)))


def held(mesh, placements, coordinate):
    """Per dim the interval of blocks that the rank at `coordinate` holds."""
    spans = [(0, BLOCKS)] * len(SHAPE)
    for size, placement, at in zip(mesh, placements, coordinate):
        if placement[0] != "S":
            continue
        dim = int(placement[1])
        lo, hi = spans[dim]
        part = (hi - lo) // size
        spans[dim] = (lo + at * part, lo + (at + 1) * part)
    return spans


def commodities(request):
    """{(owners per addend, needers): bytes}, ranks as bits."""
    mesh, ranks, source, to_mesh, to_ranks, target = request
    cuts = [{0, BLOCKS} for _ in SHAPE]
    sides = []
    for shape, numbers, placements in ((mesh, ranks, source), (to_mesh, to_ranks, target)):
        side = []
        for rank, at in zip(numbers, coordinates(shape)):
            spans = held(shape, placements, at)
            addend = tuple(i for i, p in zip(at, placements) if p == "P")
            side.append((rank, addend, spans))
            for dim, (lo, hi) in enumerate(spans):
                cuts[dim] |= {lo, hi}
        sides.append(side)
    found = {}
    pieces = [list(itertools.pairwise(sorted(cut))) for cut in cuts]
    for block in itertools.product(*pieces):
        inside = lambda spans: all(a <= lo and hi <= b for (lo, hi), (a, b) in zip(block, spans))
        owners = {}
        for rank, addend, spans in sides[0]:
            if inside(spans):
                owners[addend] = owners.get(addend, 0) | 1 << rank
        needers = sum(1 << rank for rank, _, spans in sides[1] if inside(spans))
        size = TENSOR_BYTES
        for lo, hi in block:
            size = size * (hi - lo) // BLOCKS
        key = (tuple(sorted(owners.values())), needers)
        found[key] = found.get(key, 0) + size
    if len(next(iter(found))[0]) == 1:
        return {key: size for key, size in found.items() if key[1] & ~key[0][0]}
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


def optimum_s(request):
    """Seconds; 0 where nothing moves."""
    found = commodities(request)
    if not found:
        return 0.0
    job = sorted({*request[1], *request[4]})
    group = [g for g in range(RANKS)
             if all(r ^ g in job for r in job)
             and all(found.get(moved(key, g)) == size for key, size in found.items())]
    least = [min(r ^ g for g in group) for r in range(RANKS)]
    port_of = [(r,) for r in least]
    orbit_sizes = {r: least.count(r) for r in set(least)}
    program = Program(job)
    done = set()
    scale = TENSOR_BYTES / RANKS
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
        roots = [r for r in job if r == min(r ^ g for g in still)]
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


MESHES = [(2, 8), (4, 4), (8, 2)]
ALL = list(range(RANKS))


def pairs():
    words = ["R", "S0", "S1", "S2"]
    lists = list(itertools.product(words, repeat=2))
    for mesh in MESHES:
        for source, target in itertools.product(lists, repeat=2):
            yield "pair", (mesh, ALL, source, mesh, ALL, target)


def partial_sources():
    sources = [("P", "R"), ("R", "P"), ("P", "P"), ("P", "S0"), ("S0", "P"), ("S1", "P")]
    targets = [("R", "R"), ("S0", "R"), ("R", "S0"), ("S0", "S0"), ("S0", "S1")]
    for source, target in itertools.product(sources, targets):
        yield "partial", ((2, 8), ALL, source, (2, 8), ALL, target)


def across_meshes():
    halves = [((8,), range(0, 8)), ((2, 4), range(0, 8)), ((4,), range(0, 4)),
              ((4,), range(6, 10)), ((2,), range(0, 2)), ((2, 2), (0, 1, 8, 9))]
    others = [((8,), range(8, 16)), ((4,), range(8, 12)), ((4, 4), range(0, 16)),
              ((2,), range(14, 16)), ((6,), range(2, 8))]
    words = ["R", "S1", "S0"]
    for (mesh, ranks), (to_mesh, to_ranks) in itertools.product(halves, others):
        if to_mesh == (6,):
            words_to = ["R"]
        else:
            words_to = words
        for first, last in itertools.product(words, words_to):
            source = (first,) + ("S2",) * (len(mesh) - 1)
            target = (last,) + ("R",) * (len(to_mesh) - 1)
            yield "across", (mesh, list(ranks), source, to_mesh, list(to_ranks), target)


def text_of(request):
    mesh, ranks, source, to_mesh, to_ranks, target = request
    side = lambda m, r, p: " ".join(["x".join(map(str, m)), ",".join(map(str, r)),
                                     ",".join(f"S({w[1]})" if w[0] == "S" else w for w in p)])
    return side(mesh, ranks, source) + " " + side(to_mesh, to_ranks, target)


def line_of(item):
    kind, request = item
    ps = optimum_s(request) * 1e12
    return f"{kind} {text_of(request)} {ps:.1f}" if ps > 0 else ""


HEADER = """\
# Written by tests/core/bounds/flow_optimum.py; do not edit.
# The least time of a fractional steady state on two nodes of 8 GPUs, 450 GB/s NVLink and 50 GB/s
# NIC each way per GPU, without latencies, f32[32,8192,4096]. Per line: pair, partial or across;
# source mesh, ranks, placements; the destination's; picoseconds."""


def main():
    kinds = ["pair", "partial", "across"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", metavar="|".join(kinds), help="(default: all)")
    chosen = parser.parse_args().kinds or kinds
    items = [i for make in (pairs, across_meshes, partial_sources) for i in make()
             if i[0] in chosen]
    print(HEADER)
    with multiprocessing.Pool(2) as pool:
        for line in pool.imap(line_of, items):
            if line:
                print(line, flush=True)


if __name__ == "__main__":
    main()
