# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's placements, meshes and specs: how these scripts write them and how PyTorch prints
them."""

import functools
import itertools
import math
import re

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec, ShardOrderEntry, TensorMeta
from torch.distributed.tensor._ops._math_ops import _NormPartial
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
from torch.distributed.tensor.placement_types import _MaskPartial, _StridedShard
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._dtype_abbrs import dtype_abbrs

R, P, S = Replicate(), Partial(), Shard
KIND = re.compile(
    r"R|_S\((\d+), ?(\d+)\)|S\(?(\d+)\)?|_?N(?:ormP)?\(?(inf|[\d.]+)\)?"
    r"|MaskP\(sum, torch\.Size\(\[([\d, ]*)\]\), (\d+)\)|P\(?(sum|avg|max|min|product)?\)?"
)


def SS(dim, factor):
    return _StridedShard(dim, split_factor=factor)


def placement(match):
    dim, factor, shard, norm, sizes, offset, op = match.groups()
    if match[0] == "R":
        return R
    if dim:
        return SS(int(dim), int(factor))
    if shard:
        return S(int(shard))
    if norm:
        return _NormPartial(norm_type=int(norm) if norm.isdigit() else float(norm))
    if sizes is not None:
        shape = torch.Size(int(size) for size in sizes.split(","))
        return _MaskPartial(offset_shape=shape, offset_dim=int(offset))
    return Partial(op or "sum")


def placements_of(words):
    """Reads placements as str() prints them, or shorter: S0 for S(0), Pmax, P for P(sum), N2."""
    assert not KIND.sub("", words), words
    return tuple(placement(match) for match in KIND.finditer(words))


def text(placements):
    return "".join(str(p) for p in placements)


def by(symbol, numbers):
    return symbol.join(str(n) for n in numbers)


def folded(entries):
    """The entries, "=" for one that is the same as the one before."""
    return " ".join(e if i == 0 or e != entries[i - 1] else "=" for i, e in enumerate(entries))


def coordinates(mesh):
    return list(itertools.product(*(range(n) for n in mesh)))


def fake_ranks(count):
    """Makes this process rank 0 of `count` that do not exist."""
    if dist.is_initialized():
        dist.destroy_process_group()
    device_mesh.cache_clear()
    dist.init_process_group("fake", rank=0, world_size=count, store=FakeStore())


@functools.cache
def device_mesh(mesh):
    return DeviceMesh("cpu", torch.arange(math.prod(mesh)).view(mesh))


def spec(mesh, shape, placements, dtype=torch.float32, order=None, by_view=False):
    """`by_view`: a view made its _StridedShards, which then stand for no shard order."""
    stride = torch.empty(shape, dtype=dtype, device="meta").stride()
    meta = TensorMeta(torch.Size(shape), stride, dtype)
    return DTensorSpec(mesh, tuple(placements), tensor_meta=meta, shard_order=order,
                       use_strided_shard_as_shard_order=False if by_view else None)


def local_shape(side):
    return compute_local_shape_and_global_offset(side.shape, side.mesh, side.placements)[0]


def strided(placements):
    return any(isinstance(p, _StridedShard) for p in placements)


def orders_of(placements):
    dims = sorted({p.dim for p in placements if isinstance(p, Shard)})
    axes = [[m for m, p in enumerate(placements) if p == Shard(d)] for d in dims]
    for chosen in itertools.product(*(itertools.permutations(a) for a in axes)):
        yield tuple(ShardOrderEntry(tensor_dim=d, mesh_dims=a) for d, a in zip(dims, chosen))


def spec_row(mesh, shape, dtype, placements, order):
    made = spec(device_mesh(mesh), shape, placements, getattr(torch, dtype), order)
    position, check = [-1] * len(mesh), "same"
    for entry in made.shard_order or ():
        is_default = list(entry.mesh_dims) == sorted(entry.mesh_dims)
        if is_default and len(entry.mesh_dims) > 1:
            check = "read"
        for place, axis in enumerate(entry.mesh_dims):
            position[axis] = -1 if is_default else place
    return (f"spec|{by('x', mesh)}|{by(',', shape)}|{dtype}|{placements!r}|{by(',', position)}|"
            f"{made}|{check}")


def texts():
    """Lines "placement|STR|REPR", "dtype|NAME|ABBREVIATION" and "spec|MESH|SHAPE|DTYPE|REPR of
    the placements|ORDER|STR of the spec|CHECK".
    ORDER: per axis its position in its dim's shard order, -1 where the order is not written.
    CHECK: "same", reshard must print the same placements;
    "read", reshard must read them as the same layout but prints fewer indices: PyTorch prints [n]
    wherever several axes shard a dim, reshard only where their order is not the default.
    Left out: f8e4m3fn, PyTorch's abbreviation of float8_e4m3fn, which reshard writes f8e4m3;
    specs that print [n] behind a _StridedShard (use_strided_shard_as_shard_order=False), which
    have no meaning of their own in reshard.
    """
    some = [R, *map(S, range(8)), *(SS(d, n) for d in (0, 1, 7) for n in (1, 2, 3, 64))]
    some += map(Partial, "sum avg min max product band bor bxor".split())
    lines = [f"placement|{p!s}|{p!r}" for p in some]
    for name in ("float64 float32 float16 bfloat16 float8_e5m2 int64 int32 int16 int8 uint8 bool "
                 "complex64").split():
        lines.append(f"dtype|torch.{name}|{dtype_abbrs[getattr(torch, name)]}")
    for mesh, shape, dtype in (
        ((4,), (8,), "float32"), ((2, 2), (8, 8), "bfloat16"), ((2, 2, 2), (5, 3), "complex64")
    ):
        palette = [R, S(0), SS(0, 2), Partial("avg")] + ([S(1)] if len(shape) > 1 else [])
        for placements in itertools.product(palette, repeat=len(mesh)):
            orders = [None] if strided(placements) else orders_of(placements)
            lines += [spec_row(mesh, shape, dtype, placements, order) for order in orders]
    return lines
