# SPDX-License-Identifier: BSD-3-Clause
"""What every rank holds after PyTorch has carried out a redistribution, all ranks simulated in one
process by LocalTensorMode."""

import itertools

import torch
import torch.distributed as dist
from torch.distributed._local_tensor import LocalTensor, LocalTensorMode
from torch.distributed.tensor import Partial
from torch.distributed.tensor import _redistribute as redistribute
from torch.testing._internal.distributed.fake_pg import FakeStore
from layouts import local
from greedy_plans import only_reshard_refuses
from placements import P, R, S, SS, by, coordinates, device_mesh, spec, text

VALUES = """
One tensor dim of f32. Element i of addend a starts as 36 * (i + 1) * (1 + 2 a); a is the
row-major coordinate over the Partial axes of the source.
"mesh MESH length LENGTH", then "SOURCE > TARGET: " and per rank, row-major, what it holds at the
end, "-" for nothing; "=" the same as the rank before.
Only pairs that both PyTorch and reshard accept; see greedy_plans.txt for the others.
"""


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
    return out


def whole(values):
    numbers = values.tolist()
    assert all(v == int(v) for v in numbers)
    return by(",", (int(v) for v in numbers)) or "-"


def row(on, mesh, length, a, b):
    source, target = spec(on, (length,), a), spec(on, (length,), b)
    if only_reshard_refuses(source, target):
        return None
    try:
        after = redistribute.redistribute_local_tensor(
            LocalTensor(held(length, mesh, a)), source, target
        )
    except (AssertionError, RuntimeError, ValueError):
        return None
    entries = [whole(values) for _, values in sorted(after._local_tensors.items())]
    folded = [e if i == 0 or e != entries[i - 1] else "=" for i, e in enumerate(entries)]
    return f"{text(a)} > {text(b)}: {' '.join(folded)}"


def values():
    plain = [R, S(0), P, Partial("avg"), Partial("max")]
    lines = []
    for mesh, palette, lengths in (
        ((3,), plain + [SS(0, 2), SS(0, 4)], (2, 7, 13)),
        ((2, 2), plain, (3, 5)),
        ((3, 2), plain, (5,)),
    ):
        size = len(coordinates(mesh))
        dist.init_process_group("fake", rank=0, world_size=size, store=FakeStore())
        with LocalTensorMode(size):
            on = device_mesh(mesh)
            for length in lengths:
                lines.append(f"mesh {by('x', mesh)} length {length}")
                rows = [
                    row(on, mesh, length, a, b)
                    for a, b in itertools.product(
                        itertools.product(palette, repeat=len(mesh)), repeat=2
                    )
                ]
                lines += [r for r in rows if r]
        dist.destroy_process_group()
    return lines
