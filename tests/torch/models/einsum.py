# SPDX-License-Identifier: BSD-3-Clause
"""An einsum, forward and backward.

Usage: einsum.py scores|features: bhqd,bhkd->bhqk with sharded heads; bsd,df->bsf with d sharded on
both
"""

import sys

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

CASES = {
    "scores": ("bhqd,bhkd->bhqk", [((2, 8, 8, 4), 1), ((2, 8, 8, 4), 1)]),
    "features": ("bsd,df->bsf", [((2, 8, 32), 2), ((32, 64), 0)]),
}
mesh = init_device_mesh("cpu", (4,), mesh_dim_names=("tp",))
equation, operands = CASES[sys.argv[1]]
tensors = [
    distribute_tensor(torch.randn(shape), mesh, [Shard(dim)]).requires_grad_()
    for shape, dim in operands
]
torch.einsum(equation, *tensors).sum().backward()
