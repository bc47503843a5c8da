# SPDX-License-Identifier: BSD-3-Clause
"""FSDP expressed in DTensor: weights and batch sharded on dim 0, forward and backward.

Usage: fsdp_by_hand.py gathered|dispatched: weights gathered by hand, or left to dispatch
"""

import sys

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

WIDTH, HIDDEN, BATCH = 32, 64, 16

mesh = init_device_mesh("cpu", (4,), mesh_dim_names=("dp",))


def sharded(*shape):
    return distribute_tensor(torch.randn(shape), mesh, [Shard(0)]).requires_grad_()


def used(weight):
    return weight.redistribute(mesh, [Replicate()]) if sys.argv[1] == "gathered" else weight


w1, w2, x = sharded(HIDDEN, WIDTH), sharded(WIDTH, HIDDEN), sharded(BATCH, WIDTH)
hidden = torch.relu(torch.nn.functional.linear(x, used(w1)))
torch.nn.functional.linear(hidden, used(w2)).sum().backward()
