#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Asks an installed PyTorch what it does and writes the answers as text that the tests read.

    python3 tools/oracles/torch_expectations.py tests/torch/data

Needs Python 3 and torch (CPU use only); no test runs it. The same PyTorch writes the same bytes. Everything comes from PyTorch's own functions:
index sets and offsets from what compute_local_shape_and_global_offset runs inside, shard orders from the planner's shapes, steps from the greedy planner, costs from
redistribute_cost, texts from str() and repr(). Rows in which PyTorch is known to be wrong, or where reshard deliberately does something else, are left out or marked,
each with its reason in the header of the file.
"""

import itertools
import math
import os
import sys
import types

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, _mesh_resources
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor import _collective_utils as costs
from torch.distributed.tensor import _redistribute as redistribute
from torch.distributed.tensor import _utils as offsets
from torch.distributed.tensor._dtensor_spec import DTensorSpec, ShardOrderEntry, TensorMeta
from torch.distributed.tensor.placement_types import _StridedShard
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._dtype_abbrs import dtype_abbrs

WORLD = 16
R, P = Replicate(), Partial()


def S(dim):
    return Shard(dim)


def SS(dim, factor):
    return _StridedShard(dim, split_factor=factor)


def text(placements):
    return "".join(str(p) for p in placements)


def by(symbol, numbers):
    return symbol.join(str(n) for n in numbers)


def coordinates(mesh):
    return list(itertools.product(*(range(n) for n in mesh)))


def write(folder, name, what, lines):
    with open(os.path.join(folder, name), "w", encoding="ascii", newline="\n") as out:
        out.write(f"# Written by tools/oracles/torch_expectations.py with torch {torch.__version__.split('+')[0]}; do not edit.\n")
        for line in what.strip().splitlines():
            out.write(f"# {line.strip()}".rstrip() + "\n")
        out.writelines(line + "\n" for line in lines)
    print(f"{name}: {len(lines)} lines")


# ---- (a) where elements lie --------------------------------------------------------------------------------------------------------------


def local(shape, mesh, coordinate, placements):
    """PyTorch's local shape, global offset and, per sharded dim in the order first met, the whole list of global indices it works with."""
    lists = []
    plain = offsets._get_first_offset

    def recording(indices):
        lists.append(indices.tolist())
        return plain(indices)

    offsets._get_first_offset = recording
    try:
        size, offset = offsets._compute_local_shape_and_global_offset(shape, mesh, list(coordinate), placements)
    finally:
        offsets._get_first_offset = plain
    return size, offset, lists


def runs(indices):
    out = []
    for i in indices:
        if out and out[-1][1] == i - 1:
            out[-1][1] = i
        else:
            out.append([i, i])
    return ",".join(f"{lo}-{hi}" if hi > lo else f"{lo}" for lo, hi in out)


def index_set(length, mesh, coordinate, placements):
    size, offset, lists = local((length,), mesh, coordinate, placements)
    if size == (0,):
        return f"@{offset[0]}"
    indices = lists[0] if lists else range(length)
    assert len(indices) == size[0] and indices[0] == offset[0]
    return runs(indices)


INDEX_SETS = """
One tensor dim. "mesh MESH PLACEMENTS", then "LENGTH: " and per rank, row-major, the global indices it holds in local order, or @OFFSET where it holds none.
_StridedShard means what PyTorch's main does, whatever becomes of pytorch issue 168134 (another meaning of uneven strided shards).
"""


def index_sets():
    cases = [((n,), [[S(0)], [SS(0, 2)], [SS(0, 3)], [SS(0, 6)]], range(18)) for n in (1, 2, 3, 4, 5, 6, 8)]
    one = [S(0), R, SS(0, 2), SS(0, 3), SS(0, 4)]
    two = [list(p) for p in itertools.product(one, one) if p.count(R) < 2]
    cases += [(mesh, two, (0, 1, 2, 3, 5, 6, 7, 9, 13, 16, 18)) for mesh in ((2, 2), (2, 3), (3, 2), (4, 2), (2, 4), (1, 3), (3, 1))]
    three = [list(p) for p in itertools.product([S(0), SS(0, 2), SS(0, 3)], repeat=3)]
    cases += [(mesh, three, (0, 1, 5, 8, 13, 16, 31)) for mesh in ((2, 2, 2), (2, 3, 2), (3, 1, 2))]
    lines = []
    for mesh, placements_list, lengths in cases:
        for placements in placements_list:
            lines.append(f"mesh {by('x', mesh)} {text(placements)}")
            for length in lengths:
                lines.append(f"{length}: " + " ".join(index_set(length, mesh, c, placements) for c in coordinates(mesh)))
    return lines


LOCAL_SHAPES = """
"mesh MESH shape SHAPE", then "PLACEMENTS: " and per rank, row-major, LOCALSHAPE@GLOBALOFFSET; "=" stands for the same as the rank before.
"""


def local_shapes():
    palettes = {1: [R, P, S(0), SS(0, 2)], 2: [R, S(0), S(1), SS(0, 2), SS(1, 3)], 3: [R, S(0), S(1), S(2), SS(0, 2), SS(2, 3)]}
    shapes = [(0,), (7,), (5, 7), (8, 1), (0, 3), (6, 4, 3), (1, 5, 0), (9, 2, 17)]
    lines = []
    for shape, mesh in itertools.product(shapes, [(3,), (4,), (2, 2), (4, 2), (2, 3), (2, 2, 2), (3, 2, 1)]):
        lines.append(f"mesh {by('x', mesh)} shape {by(',', shape)}")
        for number, placements in enumerate(itertools.product(palettes[len(shape)], repeat=len(mesh))):
            # Three dims on three axes: every fifth is enough, and 5 shares no factor with the palette's size.
            if len(shape) == 3 and len(mesh) == 3 and number % 5:
                continue
            entries = []
            for coordinate in coordinates(mesh):
                size, offset, _ = local(shape, mesh, coordinate, placements)
                entries.append(f"{by(',', size)}@{by(',', offset)}")
            folded = [e if i == 0 or e != entries[i - 1] else "=" for i, e in enumerate(entries)]
            lines.append(f"{text(placements)}: {' '.join(folded)}")
    return lines


SHARD_ORDERS = """
Shapes under shard orders, from the shapes that PyTorch's planner gives a rank while it carries out an order.
"mesh MESH shape SHAPE", then "PLACEMENTS: " with the order as PyTorch prints it and per rank, row-major, the local shape.
The encoding of an order as _StridedShard is not used: it gives other shards on some uneven sizes, such as length 7 on 3x2.
"""


class MeshAt:
    """What the planner asks of a mesh, seen from one coordinate."""

    def __init__(self, mesh, coordinate):
        self.mesh, self.coordinate = mesh, coordinate

    def size(self, mesh_dim):
        return self.mesh[mesh_dim]

    def _sym_get_coordinate(self, mesh_dim):
        return self.coordinate[mesh_dim]


def orders_of(placements):
    dims = sorted({p.dim for p in placements if isinstance(p, Shard)})
    axes = [[m for m, p in enumerate(placements) if p == Shard(d)] for d in dims]
    for chosen in itertools.product(*(itertools.permutations(a) for a in axes)):
        yield tuple(ShardOrderEntry(tensor_dim=d, mesh_dims=a) for d, a in zip(dims, chosen))


def shard_orders():
    lines = []
    shapes = [(7,), (8,), (17,), (31,), (5, 9), (13, 4)]
    for shape, mesh in itertools.product(shapes, [(2, 2), (3, 2), (4, 2), (4, 3), (2, 2, 2), (3, 1, 2), (2, 3, 4)]):
        lines.append(f"mesh {by('x', mesh)} shape {by(',', shape)}")
        for placements in itertools.product([R] + [S(d) for d in range(len(shape))], repeat=len(mesh)):
            for order in orders_of(placements):
                if DTensorSpec.is_default_device_order(order):
                    continue
                state = redistribute.DTensorRedistributePlanner.DistState(placements, order)
                sizes = []
                for coordinate in coordinates(mesh):
                    planner = types.SimpleNamespace(device_mesh=MeshAt(mesh, coordinate))
                    sizes.append(redistribute.DTensorRedistributePlanner.get_logical_shape(planner, state, -1, shape))
                lines.append(f"{DTensorSpec.format_shard_order_str(placements, order)}: {' '.join(by(',', s) for s in sizes)}")
    return lines


# ---- (b) greedy plans and costs ------------------------------------------------------------------------------------------------------------

PLAIN = {"r": R, "a": S(0), "b": S(1), "c": S(2), "p": P, "x": SS(0, 2), "y": SS(0, 3), "z": SS(1, 2)}
OPS = {"r": R, "a": S(0), "p": P, "v": Partial("avg"), "m": Partial("max"), "u": Partial("product")}


def palette(letters, among=PLAIN):
    return {letter: among[letter] for letter in letters}


def header_of(mesh, names):
    return f"mesh {by('x', mesh)} palette " + " ".join(f"{k}={p}" for k, p in names.items())


def all_placements(mesh, names):
    return list(itertools.product(names, repeat=len(mesh)))


def spec(mesh, shape, placements, dtype=torch.float32, order=None):
    meta = TensorMeta(torch.Size(shape), torch.empty(shape, dtype=dtype, device="meta").stride(), dtype)
    return DTensorSpec(mesh, tuple(placements), tensor_meta=meta, shard_order=order)


def device_mesh(mesh):
    return DeviceMesh("cpu", torch.arange(math.prod(mesh)).view(mesh))


def is_refused(source, target, mesh):
    """What PyTorch refuses: infinite cost, mixed reductions, or a Partial that cannot be made. (The cost of _StridedShard is infinite whatever it becomes, so Shard stands for it.)"""
    plain = [spec(mesh, s.shape, [S(p.dim) if isinstance(p, _StridedShard) else p for p in s.placements]) for s in (source, target)]
    if costs.redistribute_cost(*plain) == math.inf:
        return True
    try:
        offsets.assert_no_mixed_partial_types(source.placements)
        offsets.assert_no_mixed_partial_types(target.placements)
        for axis, (a, b) in enumerate(zip(source.placements, target.placements)):
            if a.is_replicate() and b.is_partial():
                b._partition_value(torch.ones(1), mesh, axis)
    except (AssertionError, ValueError):
        return True
    return False


def plan(source, target, names):
    letters = {p: k for k, p in names.items()}
    state, out = list(source.placements), ""
    for step in redistribute._gen_transform_infos_non_cached(source, target):
        before, after = step.src_dst_placements
        assert state[step.mesh_dim] == before
        state[step.mesh_dim] = after
        if any(isinstance(p, _StridedShard) for p in (before, after)) and R not in (before, after):
            out += f"{step.mesh_dim}{letters[R]}"
        out += f"{step.mesh_dim}{letters[after]}"
    assert tuple(state) == target.placements
    return out or "."


GREEDY_PLANS = """
PyTorch's default planner. "mesh MESH palette LETTER=PLACEMENT ...", then per source "SOURCE: " and per target (the product of the palette, last axis fastest) the
steps as axis and new placement, "." for none. The steps do not depend on the shape: the script compares several.
"!" behind a plan: PyTorch refuses it or its cost is infinite, and so must reshard refuse the request. (Shard to Partial has an infinite cost; torch 2.15 carries it out when
asked for explicitly, reshard does not.) "~" instead of a plan: not compared, a transition that is refused on an axis of size 1 only, where the
cost model knows no exception although the executor only relabels; reshard allows it. "?" behind a plan or alone: PyTorch goes on, reshard refuses by its own rules: one
reduction is folded on some axis while another is made on a different one (P(sum) to R beside R to P(max)), or R becomes P(sum) in integers, which PyTorch divides into floats.
A step between a _StridedShard and something else than R is written as the two that PyTorch's executor makes of it, through R.
Left out: shard orders and _StridedShard on meshes with several axes, where PyTorch uses its graph planner, or, when the split factor is no product of axis sizes, a
greedy walk that does not see strided shards (its own comment says so) and so leaves [_S(0, 3), S(0)] -> [R, S(0)] on 2x2 without the steps on axis 1.
"""

PLAN_CASES = [
    ((4,), palette("rabcp"), [(8, 8, 8), (5, 3, 2)]),
    ((2, 2), palette("rabcp"), [(8, 8, 8), (5, 3, 2), (0, 1, 7)]),
    ((4, 2), palette("rabcp"), [(8, 8, 8), (5, 3, 2)]),
    ((2, 2, 2), palette("rabcp"), [(8, 8, 8), (5, 3, 2)]),
    ((4,), palette("rabpxyz"), [(8, 8), (5, 3)]),
    ((4,), palette("rapvmu", OPS), [(8,), (5,)]),
    ((2, 2), palette("rapvmu", OPS), [(8,), (5,)]),
    ((1, 2), palette("rabp"), [(8, 8), (5, 3)]),
    ((2, 1), palette("rabp"), [(8, 8), (5, 3)]),
    ((1, 2, 2), palette("rabp"), [(8, 8), (5, 3)]),
    ((2, 1, 2), palette("rabp"), [(8, 8), (5, 3)]),
]


def on_size_one(mesh, source, target):
    """Whether each transition that ends in a Partial made from something else than R is on an axis of size 1."""
    changed = [n for n, a, b in zip(mesh, source, target) if b.is_partial() and a != b and not a.is_replicate()]
    return bool(changed) and all(n == 1 for n in changed)


def only_reshard_refuses(source, target):
    reductions = [{p.reduce_op.replace("avg", "sum") for p in s.placements if p.is_partial()} for s in (source, target)]
    divides = any(a.is_replicate() and b == P for a, b in zip(source.placements, target.placements))
    dtype = source.tensor_meta.dtype
    return (reductions[0] and reductions[1] and reductions[0] != reductions[1]) or (divides and not (dtype.is_floating_point or dtype.is_complex))


def greedy_plans():
    lines = []
    for mesh, names, shapes in PLAN_CASES:
        on = device_mesh(mesh)
        lines.append(header_of(mesh, names))
        every = all_placements(mesh, names)
        specs = {s: {w: spec(on, s, [names[k] for k in w]) for w in every} for s in shapes}
        for source in every:
            row = []
            for target in every:
                plans = {plan(specs[s][source], specs[s][target], names) for s in shapes}
                assert len(plans) == 1
                a, b = specs[shapes[0]][source], specs[shapes[0]][target]
                if is_refused(a, b, on):
                    row.append("~" if on_size_one(mesh, a.placements, b.placements) else plans.pop() + "!")
                else:
                    row.append(plans.pop() + ("?" if only_reshard_refuses(a, b) else ""))
            lines.append(f"{''.join(source)}: {' '.join(row)}")
    return lines


COSTS = """
redistribute_cost in microseconds. "values" and the distinct costs as repr() prints them, one a line, numbered from 0 in the order written; then per case
"mesh MESH palette ... shape SHAPE dtype DTYPE devices_per_host N" (what the cost model was told that a host has), and per source "SOURCE: " and per target the number of the cost
in base 36; "!" infinite; "~" and "?" as in greedy_plans.txt.
"""

COST_CASES = [((4,), "rabp", shape, dtype, n) for shape, dtype in (((8, 8), "float32"), ((8192, 8192), "float32"), ((5, 7), "bfloat16"), ((0, 4), "float32"))
              for n in (1, 2, 4, 8)]
COST_CASES += [((2, 2), "rabp", shape, dtype, n) for shape, dtype in (((8, 8), "float32"), ((1024, 1024), "float32"), ((8193, 4099), "int8"), ((5, 7), "float64"))
               for n in (1, 2, 4)]
COST_CASES += [((4, 2), "rabp", shape, "bfloat16", n) for shape in ((16, 24), (4096, 28672)) for n in (1, 2, 8)]
COST_CASES += [((2, 8), "rabp", (1024, 1024), "float32", 8), ((3, 5), "rabp", (1000, 77), "float32", 8), ((2, 1), "rabp", (64, 64), "float32", 1),
               ((1, 4), "rabp", (64, 64), "float32", 2)]
COST_CASES += [((4,), "rabxp", (64, 64), "float32", 4), ((2, 2), "raxp", (64, 64), "float32", 4)]
COST_CASES += [((2, 2, 2), "rabp", (512, 512), "float32", n) for n in (2, 4, 8)]
COST_CASES += [((2, 2, 2), "rabcp", (512, 512, 512), "float32", 4)]


def base36(number):
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    out = ""
    while True:
        out = digits[number % 36] + out
        number //= 36
        if number == 0:
            return out


def cost_tables():
    numbers, lines = {}, []
    seen = {}
    _mesh_resources.num_devices_per_host = staticmethod(lambda device_type: seen["devices_per_host"])
    for mesh, letters, shape, dtype, per_host in COST_CASES:
        seen["devices_per_host"] = per_host
        costs.MeshTopoInfo.build_from_mesh.cache_clear()
        on, names = device_mesh(mesh), palette(letters)
        lines.append(f"{header_of(mesh, names)} shape {by(',', shape)} dtype {dtype} devices_per_host {per_host}")
        every = all_placements(mesh, names)
        specs = {w: spec(on, shape, [names[k] for k in w], getattr(torch, dtype)) for w in every}
        for source in every:
            row = []
            for target in every:
                cost = costs.redistribute_cost(specs[source], specs[target])
                if cost != math.inf and only_reshard_refuses(specs[source], specs[target]):
                    row.append("?")
                elif cost != math.inf:
                    row.append(base36(numbers.setdefault(repr(float(cost)), len(numbers))))
                else:
                    row.append("~" if on_size_one(mesh, specs[source].placements, specs[target].placements) else "!")
            lines.append(f"{''.join(source)}: {' '.join(row)}")
    return [f"values {len(numbers)}"] + list(numbers) + lines


# ---- (c) texts -----------------------------------------------------------------------------------------------------------------------------

TEXTS = """
"placement|STR|REPR"; "dtype|NAME|ABBREVIATION"; "spec|MESH|SHAPE|DTYPE|REPR of the placements|ORDER|STR of the spec|CHECK".
ORDER: per axis its position in its dim's shard order, -1 where the order is not written. CHECK: "same", reshard must print the same placements; "read", reshard must read them
as the same layout but prints fewer indices: PyTorch prints [n] wherever several axes shard a dim, reshard only where their order is not the default.
Left out: f8e4m3fn, PyTorch's abbreviation of float8_e4m3fn, which reshard writes f8e4m3; specs that print [n] behind a _StridedShard (use_strided_shard_as_shard_order=False), which have no meaning of their own in reshard.
"""


def spec_rows():
    rows = []
    for mesh, shape, dtype in (((4,), (8,), "float32"), ((2, 2), (8, 8), "bfloat16"), ((2, 2, 2), (5, 3), "complex64")):
        on = device_mesh(mesh)
        palette_ = [R, S(0), SS(0, 2), Partial("avg")] + ([S(1)] if len(shape) > 1 else [])
        for placements in itertools.product(palette_, repeat=len(mesh)):
            strided = any(isinstance(p, _StridedShard) for p in placements)
            for order in [None] if strided else orders_of(placements):
                made = spec(on, shape, placements, getattr(torch, dtype), order)
                position, fewer = [-1] * len(mesh), False
                for entry in made.shard_order or ():
                    default = list(entry.mesh_dims) == sorted(entry.mesh_dims)
                    fewer = fewer or (default and len(entry.mesh_dims) > 1)
                    for place, axis in enumerate(entry.mesh_dims):
                        position[axis] = -1 if default else place
                check = "read" if fewer else "same"
                rows.append(f"spec|{by('x', mesh)}|{by(',', shape)}|{dtype}|{placements!r}|{by(',', position)}|{made}|{check}")
    return rows


def texts():
    placements = [R] + [S(d) for d in range(8)] + [SS(d, n) for d in (0, 1, 7) for n in (1, 2, 3, 64)]
    placements += [Partial(op) for op in ("sum", "avg", "min", "max", "product", "band", "bor", "bxor")]
    lines = [f"placement|{p!s}|{p!r}" for p in placements]
    names = "float64 float32 float16 bfloat16 float8_e5m2 int64 int32 int16 int8 uint8 bool complex64".split()
    lines += [f"dtype|{getattr(torch, n)!r}|{dtype_abbrs[getattr(torch, n)]}" for n in names]
    return lines + spec_rows()


def main():
    folder = sys.argv[1]
    dist.init_process_group("fake", rank=0, world_size=WORLD, store=FakeStore())
    write(folder, "index_sets.txt", INDEX_SETS, index_sets())
    write(folder, "local_shapes.txt", LOCAL_SHAPES, local_shapes())
    write(folder, "shard_orders.txt", SHARD_ORDERS, shard_orders())
    write(folder, "greedy_plans.txt", GREEDY_PLANS, greedy_plans())
    write(folder, "costs.txt", COSTS, cost_tables())
    write(folder, "texts.txt", TEXTS, texts())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
