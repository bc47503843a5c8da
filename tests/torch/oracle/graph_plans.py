# SPDX-License-Identifier: BSD-3-Clause
"""The steps of PyTorch's min-cost planner, which of them it joins over flattened axes, and what
they cost, for requests drawn at random."""

import itertools
import math
import random
from unittest.mock import patch

import torch
from greedy_plans import devices_per_host
from placements import P, R, S, by, coordinates, orders_of, spec, text
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Partial, Shard
from torch.distributed.tensor import _collective_utils as cost_model
from torch.distributed.tensor import _redistribute as redistribute
from torch.distributed.tensor._dtensor_spec import DTensorSpec

DRAWS = {(4,): 40, (2, 2): 140, (2, 4): 140, (4, 4): 140, (2, 2, 2): 140}
SHAPES = [(8, 8), (1024, 1024), (8192, 8192), (64, 64, 64), (512, 512, 512), (4096,), (1 << 26,)]
UNEVEN = [(7, 5), (1023, 1021), (9, 4, 3), (8193, 4099), (13,), (5, 0), (30000001,)]


class InOrder(dict):
    """A set that keeps the order in which it was filled."""

    def add(self, value):
        self.setdefault(value)


def layout_of(draw, mesh, shape, dtype, ops):
    """A spec: plain, with a shard order, or with the _StridedShards that stand for one."""
    choices = [R, R, S(0), S(0), *map(S, range(len(shape))), *map(Partial, ops)]
    placements = tuple(draw.choice(choices) for _ in mesh.shape)
    kind = draw.choice(["plain", "order", "strided"])
    if kind == "plain":
        return spec(mesh, shape, placements, dtype)
    order = draw.choice(list(orders_of(placements)))
    if kind == "order":
        return spec(mesh, shape, placements, dtype, order)
    strided = DTensorSpec._convert_shard_order_to_StridedShard(order, placements, mesh)
    return spec(mesh, shape, strided, dtype)


def is_request(source, target):
    for a, b in zip(source.placements, target.placements):
        is_embedded = isinstance(a, Shard) and b == P
        if b.is_partial() and a != b and not a.is_replicate() and not is_embedded:
            return False
    return spec_text(source) != spec_text(target)


def ordered(side):
    if not side.use_strided_shard_as_shard_order:
        return side
    placements, order = DTensorSpec._normalize_placements_into_shard_order(
        side.placements, side.mesh, use_strided_shard_as_shard_order=True
    )
    return spec(side.mesh, side.shape, placements, side.tensor_meta.dtype, order)


def fresh_planner(source):
    redistribute.clear_redistribute_planner_cache()
    redistribute._gen_transform_infos.cache_clear()
    planner = redistribute.get_redistribute_planner(source.mesh, source.tensor_meta)
    planner.partial_reduce_ops_in_target = InOrder()


def steps_of(source, target):
    """Steps by the planner, and after how many of them a collective ends on some rank."""
    steps, ends = None, set()
    for coordinate in coordinates(source.mesh.shape):
        at = patch.object(DeviceMesh, "_sym_get_coordinate", lambda _, axis: coordinate[axis])
        with at:
            fresh_planner(source)
            steps = redistribute._gen_transform_infos_non_cached(source, target, True)
            joined = redistribute._optimize_transform_infos(
                steps, source.mesh, source.placements, target.placements
            )
        counts = (len(getattr(j, "original_mesh_dims", (0,))) for j in joined)
        ends.update(itertools.accumulate(counts))
    return steps, ends


def plan_text(source, target):
    steps, ends = steps_of(source, target)
    out = ""
    for count, step in enumerate(steps, 1):
        out += f"{step.mesh_dim}>{step.src_dst_placements[1]}"
        if count < len(steps):
            out += "," if count in ends else "+"
    return out or "."


def cost_text(source, target):
    fresh_planner(source)
    with redistribute.use_min_cost_redistribution_plan():
        return repr(float(cost_model.redistribute_cost(ordered(source), ordered(target))))


def spec_text(side):
    if side.use_strided_shard_as_shard_order:
        return text(side.placements).replace(" ", "")
    return DTensorSpec.format_shard_order_str(side.placements, side.shard_order)


def flattened_mesh(shape):
    """A mesh with every set of its axes flattened."""
    names = tuple("abcd"[: len(shape)])
    mesh = DeviceMesh("cpu", torch.arange(math.prod(shape)).view(shape), mesh_dim_names=names)
    for count in range(2, len(shape) + 1):
        for axes in itertools.combinations(names, count):
            mesh[axes]._flatten("".join(axes))
    return mesh


def drawn_line(draw, mesh):
    """A request drawn at random and its plan, or None where the draw is no request."""
    shape = draw.choice(SHAPES + UNEVEN)
    dtype = draw.choice(["float32", "bfloat16"])
    per_host = draw.choice([2, 8])
    ops = draw.choice([(), ("sum",), ("sum",), ("max",), ("sum", "avg")])
    sides = [layout_of(draw, mesh, shape, getattr(torch, dtype), ops) for _ in range(2)]
    if not is_request(*sides):
        return None
    with devices_per_host(per_host):
        return (f"{by('x', mesh.shape)} {by(',', shape)} {dtype} {per_host} "
                f"{spec_text(sides[0])} > {spec_text(sides[1])}: "
                f"{plan_text(*sides)} {cost_text(*sides)}")


def graph_plans():
    """PyTorch's min-cost planner, requests drawn at random: per line
    "MESH SHAPE DTYPE DEVICES_PER_HOST SOURCE > TARGET: STEPS COST", a step "AXIS>PLACEMENT", "+"
    between steps that _optimize_transform_infos joins on every rank where all axes have been
    flattened, "," between others, "." for none; the cost as repr() prints it, of the steps from
    the shard order that a _StridedShard stands for, "inf" where one is Shard to Partial(sum),
    which has no price.
    Operators are taken in the order in which source and target name them: PyTorch keeps them in a
    set, whose order changes from run to run.
    """
    draw, lines = random.Random(1), []
    for shape, draws in DRAWS.items():
        mesh, drawn = flattened_mesh(shape), {}
        while len(drawn) < draws:
            if line := drawn_line(draw, mesh):
                drawn[line] = None
        lines += drawn
    return lines
