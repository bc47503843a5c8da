# SPDX-License-Identifier: BSD-3-Clause
"""The steps of PyTorch's greedy planner and the costs of its model for every pair of placements
over a palette."""

import itertools
import math
from unittest.mock import patch

import torch
from placements import P, R, S, SS, by, device_mesh, spec, strided
from torch.distributed.device_mesh import _mesh_resources
from torch.distributed.tensor import Partial, Shard
from torch.distributed.tensor import _collective_utils as cost_model
from torch.distributed.tensor import _redistribute as redistribute
from torch.distributed.tensor import _utils as offsets
from torch.distributed.tensor.placement_types import _StridedShard

LETTERS = {"r": R, "a": S(0), "b": S(1), "c": S(2), "x": SS(0, 2), "y": SS(0, 3), "z": SS(1, 2)}
LETTERS |= {"p": P, "v": Partial("avg"), "m": Partial("max"), "u": Partial("product")}


def palette(letters):
    return {letter: LETTERS[letter] for letter in letters}


def header_of(mesh, names):
    return f"mesh {by('x', mesh)} palette " + " ".join(f"{k}={p}" for k, p in names.items())


def specs_of(mesh, names, shape, dtype=torch.float32):
    """Word of letters -> spec, for every list of placements over the palette."""
    words = itertools.product(names, repeat=len(mesh))
    return {w: spec(device_mesh(mesh), shape, [names[k] for k in w], dtype) for w in words}


def plain(placement):
    return S(placement.dim) if isinstance(placement, _StridedShard) else placement


def is_refused(source, target):
    """What PyTorch refuses: infinite cost, mixed reductions, or a Partial that cannot be made."""
    # Costs are infinite for what PyTorch does all the same: whatever becomes of a _StridedShard, so
    # Shard stands for it, and Shard to Partial(sum), so Replicate stands for that Shard.
    before = [R if isinstance(a, Shard) and b == P else plain(a)
              for a, b in zip(source.placements, target.placements)]
    after = map(plain, target.placements)
    priced = (spec(source.mesh, source.shape, side) for side in (before, after))
    if cost_model.redistribute_cost(*priced) == math.inf:
        return True
    try:
        offsets.assert_no_mixed_partial_types(source.placements)
        offsets.assert_no_mixed_partial_types(target.placements)
        for axis, (a, b) in enumerate(zip(source.placements, target.placements)):
            if a.is_replicate() and b.is_partial():
                b._partition_value(torch.ones(1), source.mesh, axis)
    except (AssertionError, ValueError):
        return True
    return False


def only_reshard_refuses(source, target):
    pairs = list(zip(source.placements, target.placements))
    divides = any(a.is_replicate() and b == P for a, b in pairs)
    multiplies = any(a.is_partial("product") and a != b for a, b in pairs)
    dtype = source.tensor_meta.dtype
    return divides and (multiplies or not (dtype.is_floating_point or dtype.is_complex))


def plan(source, target, names):
    letters = {p: k for k, p in names.items()}
    state, out = list(source.placements), ""
    for step in redistribute._gen_transform_infos_non_cached(source, target):
        before, after = step.src_dst_placements
        assert state[step.mesh_dim] == before
        state[step.mesh_dim] = after
        if strided((before, after)) and R not in (before, after):
            out += f"{step.mesh_dim}{letters[R]}"
        out += f"{step.mesh_dim}{letters[after]}"
    assert tuple(state) == target.placements
    return out or "."


PLAN_CASES = [
    ((4,), palette("rabcp"), [(8, 8, 8), (5, 3, 2)]),
    ((2, 2), palette("rabcp"), [(8, 8, 8), (5, 3, 2), (0, 1, 7)]),
    ((4, 2), palette("rabcp"), [(8, 8, 8), (5, 3, 2)]),
    ((2, 2, 2), palette("rabcp"), [(8, 8, 8), (5, 3, 2)]),
    ((4,), palette("rabpxyz"), [(8, 8), (5, 3)]),
    ((4,), palette("rapvmu"), [(8,), (5,)]),
    ((2, 2), palette("rapvmu"), [(8,), (5,)]),
    *((mesh, palette("rabp"), [(8, 8), (5, 3)]) for mesh in ((1, 2), (2, 1), (1, 2, 2), (2, 1, 2))),
]


def greedy_plans():
    """PyTorch's default planner. "mesh MESH palette LETTER=PLACEMENT ...", then per source
    "SOURCE: " and per target (the product of the palette, last axis fastest) the steps as axis and
    new placement, "." for none. The steps do not depend on the shape: the script compares several.
    "!" behind a plan: PyTorch refuses it or its cost is infinite, and so must reshard refuse the
    request. (Shard to Partial(sum) has an infinite cost, but is carried out when asked for.)
    "?" behind a plan or alone: PyTorch goes on, reshard refuses by its own rules: R becomes P(sum)
    while a product is folded, which PyTorch may divide once per addend, or in integers, which
    PyTorch divides into floats.
    A step between a _StridedShard and something else than R is written as the two that PyTorch's
    executor makes of it, through R.
    Left out: shard orders and _StridedShard on meshes with several axes, where PyTorch uses its
    graph planner, or, when the split factor is no product of axis sizes, a greedy walk that does
    not see strided shards (its own comment says so) and so leaves [_S(0, 3), S(0)] -> [R, S(0)] on
    2x2 without the steps on axis 1.
    """
    lines = []
    for mesh, names, shapes in PLAN_CASES:
        lines.append(header_of(mesh, names))
        specs = [specs_of(mesh, names, shape) for shape in shapes]
        for source in specs[0]:
            row = []
            for target in specs[0]:
                (steps,) = {plan(of[source], of[target], names) for of in specs}
                a, b = specs[0][source], specs[0][target]
                mark = "!" if is_refused(a, b) else "?" if only_reshard_refuses(a, b) else ""
                row.append(steps + mark)
            lines.append(f"{''.join(source)}: {' '.join(row)}")
    return lines


F32, BF16, F64, I8 = "float32", "bfloat16", "float64", "int8"
COST_CASES = [  # mesh, palette, shape, dtype, devices per host
    *(((4,), "rabp", *what, n)
      for what in (((8, 8), F32), ((8192, 8192), F32), ((5, 7), BF16), ((0, 4), F32))
      for n in (1, 2, 4, 8)),
    *(((2, 2), "rabp", *what, n)
      for what in (((8, 8), F32), ((1024, 1024), F32), ((8193, 4099), I8), ((5, 7), F64))
      for n in (1, 2, 4)),
    *(((4, 2), "rabp", shape, BF16, n) for shape in ((16, 24), (4096, 28672)) for n in (1, 2, 8)),
    ((2, 8), "rabp", (1024, 1024), F32, 8),
    ((3, 5), "rabp", (1000, 77), F32, 8),
    ((2, 1), "rabp", (64, 64), F32, 1),
    ((1, 4), "rabp", (64, 64), F32, 2),
    ((4,), "rabxp", (64, 64), F32, 4),
    ((2, 2), "raxp", (64, 64), F32, 4),
    *(((2, 2, 2), "rabp", (512, 512), F32, n) for n in (2, 4, 8)),
    ((2, 2, 2), "rabcp", (512, 512, 512), F32, 4),
]


def base36(number):
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    return (base36(number // 36) if number >= 36 else "") + digits[number % 36]


def on_size_one(source, target):
    """Whether each transition that ends in a Partial made from something else than R is on an axis
    of size 1."""
    changed = [n for n, a, b in zip(source.mesh.shape, source.placements, target.placements)
               if b.is_partial() and a != b and not a.is_replicate()]
    return bool(changed) and all(n == 1 for n in changed)


def cost_word(source, target, numbers):
    cost = cost_model.redistribute_cost(source, target)
    if cost == math.inf:
        return "~" if on_size_one(source, target) else "!"
    if only_reshard_refuses(source, target):
        return "?"
    return base36(numbers.setdefault(repr(float(cost)), len(numbers)))


def devices_per_host(count):
    """What the cost model is told that a host has."""
    cost_model.MeshTopoInfo.build_from_mesh.cache_clear()
    return patch.object(_mesh_resources, "num_devices_per_host", lambda device_type: count)


def costs_of_case(mesh, letters, shape, dtype, per_host, numbers):
    names = palette(letters)
    specs = specs_of(mesh, names, shape, getattr(torch, dtype))
    yield (f"{header_of(mesh, names)} shape {by(',', shape)} dtype {dtype} "
           f"devices_per_host {per_host}")
    with devices_per_host(per_host):
        for word, source in specs.items():
            row = (cost_word(source, target, numbers) for target in specs.values())
            yield f"{''.join(word)}: {' '.join(row)}"


def costs():
    """redistribute_cost in microseconds. "values" and the distinct costs as repr() prints them,
    one a line, numbered from 0 in the order written; then per case "mesh MESH palette ... shape
    SHAPE dtype DTYPE devices_per_host N" (what the cost model was told that a host has), and per
    source "SOURCE: " and per target the number of the cost in base 36; "!" infinite; "~" infinite
    for a transition on an axis of size 1 only, where the cost model knows no exception although
    the executor only relabels: not compared; "?" as in greedy_plans.txt.
    """
    numbers = {}
    lines = [line for case in COST_CASES for line in costs_of_case(*case, numbers)]
    return [f"values {len(numbers)}", *numbers, *lines]
