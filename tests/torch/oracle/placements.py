# SPDX-License-Identifier: BSD-3-Clause
"""Placements, meshes and specs of PyTorch in few letters, and how they are written."""

import itertools
import math

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec, ShardOrderEntry, TensorMeta
from torch.distributed.tensor.placement_types import _StridedShard

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


def device_mesh(mesh):
    return DeviceMesh("cpu", torch.arange(math.prod(mesh)).view(mesh))


def spec(mesh, shape, placements, dtype=torch.float32, order=None):
    meta = TensorMeta(
        torch.Size(shape), torch.empty(shape, dtype=dtype, device="meta").stride(), dtype
    )
    return DTensorSpec(mesh, tuple(placements), tensor_meta=meta, shard_order=order)


def orders_of(placements):
    dims = sorted({p.dim for p in placements if isinstance(p, Shard)})
    axes = [[m for m, p in enumerate(placements) if p == Shard(d)] for d in dims]
    for chosen in itertools.product(*(itertools.permutations(a) for a in axes)):
        yield tuple(ShardOrderEntry(tensor_dim=d, mesh_dims=a) for d, a in zip(dims, chosen))
