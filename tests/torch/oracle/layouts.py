# SPDX-License-Identifier: BSD-3-Clause
"""What every rank holds according to PyTorch: index sets, local shapes, global offsets, shapes
under shard orders, and the values after PyTorch has carried out a redistribution."""

import itertools
import types
from unittest.mock import patch

import torch
from greedy_plans import only_reshard_refuses
from placements import P, R, S, SS, by, coordinates, device_mesh, fake_ranks, folded, orders_of
from placements import spec, text
from torch.distributed._local_tensor import LocalTensor, LocalTensorMode
from torch.distributed.tensor import Partial
from torch.distributed.tensor import _redistribute as redistribute
from torch.distributed.tensor import _utils as offsets
from torch.distributed.tensor._dtensor_spec import DTensorSpec


def local(shape, mesh, coordinate, placements):
    """PyTorch's local shape, global offset and, per sharded dim in the order first met, the whole
    list of global indices it works with."""
    lists, plain = [], offsets._get_first_offset

    def recording(indices):
        lists.append(indices.tolist())
        return plain(indices)

    with patch.object(offsets, "_get_first_offset", recording):
        size, offset = offsets._compute_local_shape_and_global_offset(
            shape, mesh, list(coordinate), placements
        )
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


def index_sets():
    """One tensor dim. "mesh MESH PLACEMENTS", then "LENGTH: " and per rank, row-major, the global
    indices it holds in local order, or @OFFSET where it holds none.
    _StridedShard means what PyTorch's main does, whatever becomes of pytorch issue 168134
    (another meaning of uneven strided shards).
    """
    cases = [((n,), [[S(0)], [SS(0, 2)], [SS(0, 3)], [SS(0, 6)]], range(18))
             for n in (1, 2, 3, 4, 5, 6, 8)]
    one = [S(0), R, SS(0, 2), SS(0, 3), SS(0, 4)]
    two = [list(p) for p in itertools.product(one, one) if p.count(R) < 2]
    cases += [(mesh, two, (0, 1, 2, 3, 5, 6, 7, 9, 13, 16, 18))
              for mesh in ((2, 2), (2, 3), (3, 2), (4, 2), (2, 4), (1, 3), (3, 1))]
    three = [list(p) for p in itertools.product([S(0), SS(0, 2), SS(0, 3)], repeat=3)]
    cases += [(mesh, three, (0, 1, 5, 8, 13, 16, 31)) for mesh in ((2, 2, 2), (2, 3, 2), (3, 1, 2))]
    lines = []
    for mesh, placements_list, lengths in cases:
        for placements in placements_list:
            lines.append(f"mesh {by('x', mesh)} {text(placements)}")
            for length in lengths:
                sets = (index_set(length, mesh, c, placements) for c in coordinates(mesh))
                lines.append(f"{length}: {' '.join(sets)}")
    return lines


def local_shapes():
    """Lines "mesh MESH shape SHAPE", then "PLACEMENTS: " and per rank, row-major,
    LOCALSHAPE@GLOBALOFFSET; "=" stands for the same as the rank before.
    """
    palettes = {
        1: [R, P, S(0), SS(0, 2)],
        2: [R, S(0), S(1), SS(0, 2), SS(1, 3)],
        3: [R, S(0), S(1), S(2), SS(0, 2), SS(2, 3)],
    }
    shapes = [(0,), (7,), (5, 7), (8, 1), (0, 3), (6, 4, 3), (1, 5, 0), (9, 2, 17)]
    meshes = [(3,), (4,), (2, 2), (4, 2), (2, 3), (2, 2, 2), (3, 2, 1)]
    lines = []
    for shape, mesh in itertools.product(shapes, meshes):
        lines.append(f"mesh {by('x', mesh)} shape {by(',', shape)}")
        every = itertools.product(palettes[len(shape)], repeat=len(mesh))
        # Every fifth is enough for three dims on three axes; 5 and the palette's size are coprime.
        step = 5 if len(shape) == len(mesh) == 3 else 1
        for placements in itertools.islice(every, 0, None, step):
            entries = []
            for coordinate in coordinates(mesh):
                size, offset, _ = local(shape, mesh, coordinate, placements)
                entries.append(f"{by(',', size)}@{by(',', offset)}")
            lines.append(f"{text(placements)}: {folded(entries)}")
    return lines


def planner_at(mesh, coordinate):
    """What get_logical_shape() asks its planner, seen from one coordinate."""
    seen = types.SimpleNamespace(
        size=lambda mesh_dim: mesh[mesh_dim],
        _sym_get_coordinate=lambda mesh_dim: coordinate[mesh_dim],
    )
    return types.SimpleNamespace(device_mesh=seen)


def shard_orders():
    """Shapes under shard orders, from the shapes that PyTorch's planner gives a rank while it
    carries out an order.
    "mesh MESH shape SHAPE", then "PLACEMENTS: " with the order as PyTorch prints it and per rank,
    row-major, the local shape.
    The encoding of an order as _StridedShard is not used: it gives other shards on some uneven
    sizes, such as length 7 on 3x2.
    """
    shapes = [(7,), (8,), (17,), (31,), (5, 9), (13, 4)]
    meshes = [(2, 2), (3, 2), (4, 2), (4, 3), (2, 2, 2), (3, 1, 2), (2, 3, 4)]
    planner = redistribute.DTensorRedistributePlanner
    lines = []
    for shape, mesh in itertools.product(shapes, meshes):
        lines.append(f"mesh {by('x', mesh)} shape {by(',', shape)}")
        palette = [R, *map(S, range(len(shape)))]
        for placements in itertools.product(palette, repeat=len(mesh)):
            for order in orders_of(placements):
                if DTensorSpec.is_default_device_order(order):
                    continue
                state = planner.DistState(placements, order)
                sizes = (planner.get_logical_shape(planner_at(mesh, c), state, -1, shape)
                         for c in coordinates(mesh))
                ordered = DTensorSpec.format_shard_order_str(placements, order)
                lines.append(f"{ordered}: {' '.join(by(',', s) for s in sizes)}")
    return lines


def held(length, mesh, placements):
    out = {}
    for rank, coordinate in enumerate(coordinates(mesh)):
        size, _, lists = local((length,), mesh, coordinate, placements)
        addend = 0
        for axis, placement in enumerate(placements):
            if placement.is_partial():
                addend = addend * mesh[axis] + coordinate[axis]
        indices = lists[0] if lists and size[0] else range(size[0])
        out[rank] = torch.tensor([36.0 * (i + 1) * (1 + 2 * addend) for i in indices])
    return LocalTensor(out)


def whole(values):
    numbers = values.tolist()
    assert all(v == int(v) for v in numbers)
    return by(",", map(int, numbers)) or "-"


def moved_values(mesh, length, a, b):
    """A line, or nothing where PyTorch or reshard refuses the pair. All ranks are simulated."""
    source, target = (spec(device_mesh(mesh), (length,), side) for side in (a, b))
    if only_reshard_refuses(source, target):
        return []
    try:
        after = redistribute.redistribute_local_tensor(held(length, mesh, a), source, target)
    except (AssertionError, RuntimeError, ValueError):
        return []
    entries = [whole(values) for _, values in sorted(after._local_tensors.items())]
    return [f"{text(a)} > {text(b)}: {folded(entries)}"]


def values():
    """One tensor dim of f32. Element i of addend a starts as 36 * (i + 1) * (1 + 2 a); a is the
    row-major coordinate over the Partial axes of the source.
    "mesh MESH length LENGTH", then "SOURCE > TARGET: " and per rank, row-major, what it holds at
    the end, "-" for nothing; "=" the same as the rank before.
    Only pairs that both PyTorch and reshard accept; see greedy_plans.txt for the others.
    """
    plain = [R, S(0), P, Partial("avg"), Partial("max")]
    lines = []
    for mesh, palette, lengths in (
        ((3,), plain + [SS(0, 2), SS(0, 4)], (2, 7, 13)),
        ((2, 2), plain, (3, 5)),
        ((3, 2), plain, (5,)),
    ):
        size = len(coordinates(mesh))
        fake_ranks(size)
        every = list(itertools.product(palette, repeat=len(mesh)))
        with LocalTensorMode(size):
            for length in lengths:
                lines.append(f"mesh {by('x', mesh)} length {length}")
                for a, b in itertools.product(every, repeat=2):
                    lines += moved_values(mesh, length, a, b)
    return lines
