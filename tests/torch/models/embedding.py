# SPDX-License-Identifier: BSD-3-Clause
"""An embedding sharded by rows: forward and backward.

Usage: embedding.py R|S1: the placement of its output
"""

import sys

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import RowwiseParallel, parallelize_module

ROWS, WIDTH = 32, 32

output = Shard(1) if sys.argv[1] == "S1" else Replicate()
mesh = init_device_mesh("cpu", (4,), mesh_dim_names=("tp",))
model = parallelize_module(
    nn.Embedding(ROWS, WIDTH),
    mesh,
    RowwiseParallel(input_layouts=Replicate(), output_layouts=output),
)
model(torch.randint(ROWS, (2, 8))).sum().backward()
