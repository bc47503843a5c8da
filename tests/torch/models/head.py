# SPDX-License-Identifier: BSD-3-Clause
"""The last linear layer of a language model, sharded by classes, and its cross entropy: forward and
backward.

Usage: head.py [loss-parallel]
"""

import sys

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    loss_parallel,
    parallelize_module,
)

TOKENS, WIDTH, CLASSES = 8, 16, 32

mesh = init_device_mesh("cpu", (4,), mesh_dim_names=("tp",))
head = parallelize_module(
    nn.Linear(WIDTH, CLASSES, bias=False),
    mesh,
    ColwiseParallel(output_layouts=Shard(1), use_local_output=False),
)
x = torch.randn(TOKENS, WIDTH, requires_grad=True)
target = distribute_tensor(torch.randint(CLASSES, (TOKENS,)), mesh, [Replicate()])


def step():
    nn.functional.cross_entropy(head(x), target).backward()


if "loss-parallel" in sys.argv[1:]:
    with loss_parallel():
        step()
else:
    step()
