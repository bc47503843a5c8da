# SPDX-License-Identifier: BSD-3-Clause
"""Convolution and batch norm on a sharded batch: forward. PyTorch shards the channels for the norm,
which moves more than a gather would between ranks that are close to each other."""

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_module, distribute_tensor

mesh = init_device_mesh("cpu", (4,), mesh_dim_names=("dp",))
model = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU()).eval()
model = distribute_module(model, mesh)
images = distribute_tensor(torch.randn(8, 3, 32, 32), mesh, [Shard(0)])
model(images)
