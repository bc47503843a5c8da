# SPDX-License-Identifier: BSD-3-Clause
"""MLP layers under FSDP2, forward, backward and AdamW: no operator runs on DTensors, and all
collectives are FSDP's own.

Usage: fsdp.py fsdp|hsdp|tp: on 4 ranks; replicated over 2 and sharded over 2; sharded over 2 and
tensor-parallel over 2
"""

import sys

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

from layers import MLP, WIDTH

LAYERS = 2

MESHES = {
    "fsdp": ((4,), ("dp",)),
    "hsdp": ((2, 2), ("replicate", "shard")),
    "tp": ((2, 2), ("dp", "tp")),
}
kind = sys.argv[1]
shape, axes = MESHES[kind]
mesh = init_device_mesh("cpu", shape, mesh_dim_names=axes)
model = nn.Sequential(*(MLP(bias=False) for _ in range(LAYERS)))
for layer in model:
    if kind == "tp":
        parallelize_module(layer, mesh["tp"], {"w1": ColwiseParallel(), "w2": RowwiseParallel()})
    fully_shard(layer, mesh=mesh["dp"] if kind == "tp" else mesh)
fully_shard(model, mesh=mesh["dp"] if kind == "tp" else mesh)
model(torch.randn(4, WIDTH)).sum().backward()
