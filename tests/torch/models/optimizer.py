# SPDX-License-Identifier: BSD-3-Clause
"""Clipping by norm and a step of AdamW (foreach) on three sharded parameters.

Usage: optimizer.py 4|2x2 [inf]: inf clips by the largest element instead of the norm of order 2
"""

import sys

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

if sys.argv[1] == "4":
    mesh = init_device_mesh("cpu", (4,), mesh_dim_names=("dp",))
    placements = [Shard(0)]
else:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    placements = [Shard(0), Shard(1)]

shapes = [(16, 8), (8, 16), (16, 16)]
parameters = [nn.Parameter(distribute_tensor(torch.randn(s), mesh, placements)) for s in shapes]
for parameter in parameters:
    parameter.grad = distribute_tensor(torch.randn(parameter.shape), mesh, placements)
optimizer = torch.optim.AdamW(parameters, foreach=True)
torch.nn.utils.clip_grad_norm_(parameters, 1.0, float("inf") if "inf" in sys.argv[2:] else 2.0)
optimizer.step()
