# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch prints: str() and repr() of placements and specs, abbreviations of dtypes."""

import itertools

import torch
from torch.distributed.tensor import Partial
from torch.distributed.tensor.placement_types import _StridedShard
from torch.utils._dtype_abbrs import dtype_abbrs
from placements import R, S, SS, by, device_mesh, orders_of, spec

TEXTS = """"placement|STR|REPR"; "dtype|NAME|ABBREVIATION"; "spec|MESH|SHAPE|DTYPE|REPR of the
placements|ORDER|STR of the spec|CHECK".
ORDER: per axis its position in its dim's shard order, -1 where the order is not written. CHECK:
"same", reshard must print the same placements;
"read", reshard must read them as the same layout but prints fewer indices: PyTorch prints [n]
wherever several axes shard a dim, reshard only where their order is not the default.
Left out: f8e4m3fn, PyTorch's abbreviation of float8_e4m3fn, which reshard writes f8e4m3; specs
that print [n] behind a _StridedShard (use_strided_shard_as_shard_order=False), which have no
meaning of their own in reshard.
"""


def spec_rows():
    rows = []
    for mesh, shape, dtype in (
        ((4,), (8,), "float32"),
        ((2, 2), (8, 8), "bfloat16"),
        ((2, 2, 2), (5, 3), "complex64"),
    ):
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
                rows.append(
                    f"spec|{by('x', mesh)}|{by(',', shape)}|{dtype}|{placements!r}|"
                    f"{by(',', position)}|{made}|{check}"
                )
    return rows


def texts():
    placements = (
        [R] + [S(d) for d in range(8)] + [SS(d, n) for d in (0, 1, 7) for n in (1, 2, 3, 64)]
    )
    placements += [
        Partial(op) for op in ("sum", "avg", "min", "max", "product", "band", "bor", "bxor")
    ]
    lines = [f"placement|{p!s}|{p!r}" for p in placements]
    names = (
        "float64 float32 float16 bfloat16 float8_e5m2 int64 int32 int16 int8 uint8 bool complex64"
    ).split()
    lines += [f"dtype|{getattr(torch, n)!r}|{dtype_abbrs[getattr(torch, n)]}" for n in names]
    return lines + spec_rows()
