# SPDX-License-Identifier: BSD-3-Clause
"""Where PyTorch puts every element: index sets, local shapes and global offsets, shapes under shard
orders."""

import itertools
import types

from torch.distributed.tensor import Shard
from torch.distributed.tensor import _redistribute as redistribute
from torch.distributed.tensor import _utils as offsets
from torch.distributed.tensor._dtensor_spec import DTensorSpec
from placements import P, R, S, SS, by, coordinates, orders_of, text


def local(shape, mesh, coordinate, placements):
    """PyTorch's local shape, global offset and, per sharded dim in the order first met, the whole
    list of global indices it works with."""
    lists = []
    plain = offsets._get_first_offset

    def recording(indices):
        lists.append(indices.tolist())
        return plain(indices)

    offsets._get_first_offset = recording
    try:
        size, offset = offsets._compute_local_shape_and_global_offset(
            shape, mesh, list(coordinate), placements
        )
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
One tensor dim. "mesh MESH PLACEMENTS", then "LENGTH: " and per rank, row-major, the global
indices it holds in local order, or @OFFSET where it holds none.
_StridedShard means what PyTorch's main does, whatever becomes of pytorch issue 168134 (another
meaning of uneven strided shards).
"""


def index_sets():
    cases = [
        ((n,), [[S(0)], [SS(0, 2)], [SS(0, 3)], [SS(0, 6)]], range(18))
        for n in (1, 2, 3, 4, 5, 6, 8)
    ]
    one = [S(0), R, SS(0, 2), SS(0, 3), SS(0, 4)]
    two = [list(p) for p in itertools.product(one, one) if p.count(R) < 2]
    cases += [
        (mesh, two, (0, 1, 2, 3, 5, 6, 7, 9, 13, 16, 18))
        for mesh in ((2, 2), (2, 3), (3, 2), (4, 2), (2, 4), (1, 3), (3, 1))
    ]
    three = [list(p) for p in itertools.product([S(0), SS(0, 2), SS(0, 3)], repeat=3)]
    cases += [(mesh, three, (0, 1, 5, 8, 13, 16, 31)) for mesh in ((2, 2, 2), (2, 3, 2), (3, 1, 2))]
    lines = []
    for mesh, placements_list, lengths in cases:
        for placements in placements_list:
            lines.append(f"mesh {by('x', mesh)} {text(placements)}")
            for length in lengths:
                lines.append(
                    f"{length}: "
                    + " ".join(index_set(length, mesh, c, placements) for c in coordinates(mesh))
                )
    return lines


LOCAL_SHAPES = """
"mesh MESH shape SHAPE", then "PLACEMENTS: " and per rank, row-major, LOCALSHAPE@GLOBALOFFSET; "="
stands for the same as the rank before.
"""


def local_shapes():
    palettes = {
        1: [R, P, S(0), SS(0, 2)],
        2: [R, S(0), S(1), SS(0, 2), SS(1, 3)],
        3: [R, S(0), S(1), S(2), SS(0, 2), SS(2, 3)],
    }
    shapes = [(0,), (7,), (5, 7), (8, 1), (0, 3), (6, 4, 3), (1, 5, 0), (9, 2, 17)]
    lines = []
    for shape, mesh in itertools.product(
        shapes, [(3,), (4,), (2, 2), (4, 2), (2, 3), (2, 2, 2), (3, 2, 1)]
    ):
        lines.append(f"mesh {by('x', mesh)} shape {by(',', shape)}")
        for number, placements in enumerate(
            itertools.product(palettes[len(shape)], repeat=len(mesh))
        ):
            # Three dims on three axes: every fifth is enough, and 5 shares no factor with the
            # palette's size.
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
Shapes under shard orders, from the shapes that PyTorch's planner gives a rank while it carries
out an order.
"mesh MESH shape SHAPE", then "PLACEMENTS: " with the order as PyTorch prints it and per rank,
row-major, the local shape.
The encoding of an order as _StridedShard is not used: it gives other shards on some uneven sizes,
such as length 7 on 3x2.
"""


class MeshAt:
    """What the planner asks of a mesh, seen from one coordinate."""

    def __init__(self, mesh, coordinate):
        self.mesh, self.coordinate = mesh, coordinate

    def size(self, mesh_dim):
        return self.mesh[mesh_dim]

    def _sym_get_coordinate(self, mesh_dim):
        return self.coordinate[mesh_dim]


def shard_orders():
    lines = []
    shapes = [(7,), (8,), (17,), (31,), (5, 9), (13, 4)]
    for shape, mesh in itertools.product(
        shapes, [(2, 2), (3, 2), (4, 2), (4, 3), (2, 2, 2), (3, 1, 2), (2, 3, 4)]
    ):
        lines.append(f"mesh {by('x', mesh)} shape {by(',', shape)}")
        for placements in itertools.product(
            [R] + [S(d) for d in range(len(shape))], repeat=len(mesh)
        ):
            for order in orders_of(placements):
                if DTensorSpec.is_default_device_order(order):
                    continue
                state = redistribute.DTensorRedistributePlanner.DistState(placements, order)
                sizes = []
                for coordinate in coordinates(mesh):
                    planner = types.SimpleNamespace(device_mesh=MeshAt(mesh, coordinate))
                    sizes.append(
                        redistribute.DTensorRedistributePlanner.get_logical_shape(
                            planner, state, -1, shape
                        )
                    )
                lines.append(
                    f"{DTensorSpec.format_shard_order_str(placements, order)}: "
                    + " ".join(by(",", s) for s in sizes)
                )
    return lines
