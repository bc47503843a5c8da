# SPDX-License-Identifier: BSD-3-Clause
"""A Transformer layer with tensor and sequence parallelism: forward and backward.

Usage: layer.py [rms] [dtensor] [step]: RMSNorm instead of LayerNorm; outputs kept as DTensors;
followed by clipping by norm and a step of AdamW
"""

import sys

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

from layers import Layer, WIDTH

norm = nn.RMSNorm if "rms" in sys.argv[1:] else nn.LayerNorm
local = "dtensor" not in sys.argv[1:]
gather = PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),))
scatter = RowwiseParallel(output_layouts=Shard(1), use_local_output=local)
split = ColwiseParallel(use_local_output=local)
plan = {
    "attention_norm": SequenceParallel(use_local_output=local),
    "attention": gather,
    "attention.wq": split,
    "attention.wk": split,
    "attention.wv": split,
    "attention.wo": scatter,
    "mlp_norm": SequenceParallel(use_local_output=local),
    "mlp": gather,
    "mlp.w1": split,
    "mlp.w2": scatter,
}
mesh = init_device_mesh("cpu", (4,), mesh_dim_names=("tp",))
model = parallelize_module(Layer(norm), mesh, plan)
x = torch.randn(2, 2, WIDTH, requires_grad=True)  # this rank's tokens
if not local:
    x = DTensor.from_local(x, mesh, [Shard(1)])
model(x).sum().backward()
if "step" in sys.argv[1:]:
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
