# SPDX-License-Identifier: BSD-3-Clause
"""Attention with tensor parallelism, a quarter of the heads on each rank: forward and backward.

Usage: attention.py local|dtensor: heads on local tensors, or everything on DTensors
"""

import sys

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

from layers import Attention, WIDTH

local = sys.argv[1] == "local"
plan = {name: ColwiseParallel(use_local_output=local) for name in ("wq", "wk", "wv")}
plan["wo"] = RowwiseParallel(use_local_output=local)
mesh = init_device_mesh("cpu", (4,), mesh_dim_names=("tp",))
model = parallelize_module(Attention(), mesh, plan)
x = torch.randn(2, 8, WIDTH, requires_grad=True)
model(x).sum().backward()
