# SPDX-License-Identifier: BSD-3-Clause
"""An MLP with tensor parallelism, w1 sharded by columns, w2 by rows: forward and backward.

Usage: mlp.py [sequence-parallel]
"""

import sys

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

from layers import MLP, WIDTH

sequence = "sequence-parallel" in sys.argv[1:]
outside = Shard(1) if sequence else Replicate()
plan = {
    "w1": ColwiseParallel(input_layouts=outside),
    "w2": RowwiseParallel(output_layouts=outside),
}
mesh = init_device_mesh("cpu", (4,), mesh_dim_names=("tp",))
model = parallelize_module(MLP(), mesh, plan)
x = torch.randn(*((2, 2) if sequence else (4,)), WIDTH, requires_grad=True)
model(x).sum().backward()
