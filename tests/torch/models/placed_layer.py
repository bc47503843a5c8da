# SPDX-License-Identifier: BSD-3-Clause
"""A Transformer layer in which only the parameters are placed; dispatch decides the rest, forward
and backward.

Usage: placed_layer.py PLACEMENTS [rms]: those of the input, "R" or "S1" on 4 ranks, "S0,R" or
"S0,S1" on 2 x 2
"""

import sys

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_module, distribute_tensor

from layers import Layer, WIDTH

input_placements = [
    Replicate() if each == "R" else Shard(int(each[1:])) for each in sys.argv[1].split(",")
]
if len(input_placements) == 1:
    mesh = init_device_mesh("cpu", (4,), mesh_dim_names=("tp",))
else:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))

OF_WEIGHTS = {"wq": Shard(0), "wk": Shard(0), "wv": Shard(0), "w1": Shard(0)}
OF_WEIGHTS |= {"wo": Shard(1), "w2": Shard(1)}


def place(name, module, mesh):
    on_tp = OF_WEIGHTS.get(name.split(".")[-1], Replicate())
    placements = [Replicate()] * (mesh.ndim - 1) + [on_tp]
    for key, parameter in module.named_parameters(recurse=False):
        module.register_parameter(key, nn.Parameter(distribute_tensor(parameter, mesh, placements)))


norm = nn.RMSNorm if "rms" in sys.argv[2:] else nn.LayerNorm
model = distribute_module(Layer(norm), mesh, place)
batch = 4 if sys.argv[1] == "S0,S1" else 2
x = distribute_tensor(torch.randn(batch, 8, WIDTH), mesh, input_placements).requires_grad_()
model(x).sum().backward()
