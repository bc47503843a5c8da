# SPDX-License-Identifier: BSD-3-Clause
"""The steps of PyTorch's greedy planner and the costs of its model for every pair of placements
over a palette."""

import itertools
import math

import torch
from torch.distributed.device_mesh import _mesh_resources
from torch.distributed.tensor import Partial, Shard
from torch.distributed.tensor import _collective_utils as costs
from torch.distributed.tensor import _redistribute as redistribute
from torch.distributed.tensor import _utils as offsets
from torch.distributed.tensor.placement_types import _StridedShard
from placements import P, R, S, SS, by, device_mesh, spec

PLAIN = {
    "r": R,
    "a": S(0),
    "b": S(1),
    "c": S(2),
    "p": P,
    "x": SS(0, 2),
    "y": SS(0, 3),
    "z": SS(1, 2),
}
OPS = {"r": R, "a": S(0), "p": P, "v": Partial("avg"), "m": Partial("max"), "u": Partial("product")}


def palette(letters, among=PLAIN):
    return {letter: among[letter] for letter in letters}


def header_of(mesh, names):
    return f"mesh {by('x', mesh)} palette " + " ".join(f"{k}={p}" for k, p in names.items())


def all_placements(mesh, names):
    return list(itertools.product(names, repeat=len(mesh)))


def plain(placement):
    return S(placement.dim) if isinstance(placement, _StridedShard) else placement


def is_refused(source, target, mesh):
    """What PyTorch refuses: infinite cost, mixed reductions, or a Partial that cannot be made."""
    # Costs are infinite for what PyTorch does all the same: whatever becomes of a _StridedShard, so
    # Shard stands for it, and Shard to Partial(sum), so Replicate stands for that Shard.
    before = [
        R if isinstance(a, Shard) and b == P else plain(a)
        for a, b in zip(source.placements, target.placements)
    ]
    after = [plain(p) for p in target.placements]
    if costs.redistribute_cost(*(spec(mesh, source.shape, s) for s in (before, after))) == math.inf:
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


GREEDY_PLANS = """PyTorch's default planner. "mesh MESH palette LETTER=PLACEMENT ...", then per
source "SOURCE: " and per target (the product of the palette, last axis fastest) the steps as axis
and new placement, "." for none. The steps do not depend on the shape: the script compares
several.
"!" behind a plan: PyTorch refuses it or its cost is infinite, and so must reshard refuse the
request. (Shard to Partial(sum) has an infinite cost, but is carried out when asked for.)
"?" behind a plan or alone: PyTorch goes on, reshard refuses by its own rules: R becomes P(sum)
beside a product that is folded, which PyTorch may divide once per addend, or in integers, which
PyTorch divides into floats.
A step between a _StridedShard and something else than R is written as the two that PyTorch's
executor makes of it, through R.
Left out: shard orders and _StridedShard on meshes with several axes, where PyTorch uses its graph
planner, or, when the split factor is no product of axis sizes, a greedy walk that does not see
strided shards (its own comment says so) and so leaves [_S(0, 3), S(0)] -> [R, S(0)] on 2x2
without the steps on axis 1.
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
    """Whether each transition that ends in a Partial made from something else than R is on an axis
    of size 1."""
    changed = [
        n
        for n, a, b in zip(mesh, source, target)
        if b.is_partial() and a != b and not a.is_replicate()
    ]
    return bool(changed) and all(n == 1 for n in changed)


def only_reshard_refuses(source, target):
    pairs = list(zip(source.placements, target.placements))
    divides = any(a.is_replicate() and b == P for a, b in pairs)
    multiplies = any(a.is_partial("product") and a != b for a, b in pairs)
    dtype = source.tensor_meta.dtype
    return divides and (multiplies or not (dtype.is_floating_point or dtype.is_complex))


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
                mark = "!" if is_refused(a, b, on) else "?" if only_reshard_refuses(a, b) else ""
                row.append(plans.pop() + mark)
            lines.append(f"{''.join(source)}: {' '.join(row)}")
    return lines


COSTS = """redistribute_cost in microseconds. "values" and the distinct costs as repr() prints
them, one a line, numbered from 0 in the order written; then per case "mesh MESH palette ... shape
SHAPE dtype DTYPE devices_per_host N" (what the cost model was told that a host has), and per
source "SOURCE: " and per target the number of the cost in base 36; "!" infinite; "~" infinite for
a transition on an axis of size 1 only, where the cost model knows no exception although the
executor only relabels: not compared; "?" as in greedy_plans.txt.
"""

F32, BF16, F64, I8 = "float32", "bfloat16", "float64", "int8"
COST_CASES = [
    ((4,), "rabp", *what, n)
    for what in (((8, 8), F32), ((8192, 8192), F32), ((5, 7), BF16), ((0, 4), F32))
    for n in (1, 2, 4, 8)
]
COST_CASES += [
    ((2, 2), "rabp", *what, n)
    for what in (((8, 8), F32), ((1024, 1024), F32), ((8193, 4099), I8), ((5, 7), F64))
    for n in (1, 2, 4)
]
COST_CASES += [
    ((4, 2), "rabp", shape, BF16, n) for shape in ((16, 24), (4096, 28672)) for n in (1, 2, 8)
]
COST_CASES += [((2, 8), "rabp", (1024, 1024), F32, 8), ((3, 5), "rabp", (1000, 77), F32, 8)]
COST_CASES += [((2, 1), "rabp", (64, 64), F32, 1), ((1, 4), "rabp", (64, 64), F32, 2)]
COST_CASES += [((4,), "rabxp", (64, 64), F32, 4), ((2, 2), "raxp", (64, 64), F32, 4)]
COST_CASES += [((2, 2, 2), "rabp", (512, 512), F32, n) for n in (2, 4, 8)]
COST_CASES += [((2, 2, 2), "rabcp", (512, 512, 512), F32, 4)]


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
    _mesh_resources.num_devices_per_host = staticmethod(
        lambda device_type: seen["devices_per_host"]
    )
    for mesh, letters, shape, dtype, per_host in COST_CASES:
        seen["devices_per_host"] = per_host
        costs.MeshTopoInfo.build_from_mesh.cache_clear()
        on, names = device_mesh(mesh), palette(letters)
        lines.append(
            f"{header_of(mesh, names)} shape {by(',', shape)} dtype {dtype} "
            f"devices_per_host {per_host}"
        )
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
                    row.append(
                        "~"
                        if on_size_one(mesh, specs[source].placements, specs[target].placements)
                        else "!"
                    )
            lines.append(f"{''.join(source)}: {' '.join(row)}")
    return [f"values {len(numbers)}"] + list(numbers) + lines
