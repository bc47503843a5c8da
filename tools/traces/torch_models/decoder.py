# SPDX-License-Identifier: BSD-3-Clause
"""A decoder with tensor parallelism, as Llama's: a table cut by rows, rotary positions, grouped
heads, a gated feed-forward, a head cut by classes; forward and backward.

Usage: decoder.py causal|mask [step]: what scaled_dot_product_attention is told; a step of AdamW
behind it
"""

import sys

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_module, distribute_tensor

WIDTH, HEADS, GROUPS, HIDDEN, ROWS, LENGTH = 32, 8, 4, 64, 64, 8
OF_WEIGHTS = {name: Shard(0) for name in ("table", "wq", "wk", "wv", "w1", "w3", "head")}
OF_WEIGHTS |= {"wo": Shard(1), "w2": Shard(1)}

mesh = init_device_mesh("cpu", (4,), mesh_dim_names=("tp",))


def placed(tensor, placement=Replicate()):
    return distribute_tensor(tensor, mesh, [placement])


def turned(x, cosines, sines):
    half = x.shape[-1] // 2
    return x * cosines + torch.cat([-x[..., half:], x[..., :half]], dim=-1) * sines


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        kept = WIDTH // HEADS * GROUPS
        self.wq = nn.Linear(WIDTH, WIDTH, bias=False)
        self.wk, self.wv = (nn.Linear(WIDTH, kept, bias=False) for _ in range(2))
        self.wo = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x, positions, given):
        q, k, v = (
            y.view(*y.shape[:2], -1, WIDTH // HEADS).transpose(1, 2)
            for y in (self.wq(x), self.wk(x), self.wv(x))
        )
        q, k = turned(q, *positions), turned(k, *positions)
        y = nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True, **given)
        return self.wo(y.transpose(1, 2).reshape(*x.shape))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(ROWS, WIDTH)
        self.attention_norm, self.norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.w1, self.w3 = (nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
        self.w2 = nn.Linear(HIDDEN, WIDTH, bias=False)
        self.head = nn.Linear(WIDTH, ROWS, bias=False)

    def forward(self, tokens, positions, given):
        # A view of a look-up that waits for its sum, as modules with hooks make them. Its gradient
        # must not wait for one.
        x = self.table(tokens).view(*tokens.shape, WIDTH).redistribute(mesh, [Replicate()])
        x.register_hook(lambda gradient: gradient.redistribute(mesh, [Replicate()]))
        x = x + self.attention(self.attention_norm(x), positions, given)
        y = self.norm(x)
        return self.head(x + self.w2(nn.functional.silu(self.w1(y)) * self.w3(y)))


def place(name, module, mesh):
    placement = OF_WEIGHTS.get(name.split(".")[-1], Replicate())
    for key, parameter in module.named_parameters(recurse=False):
        module.register_parameter(key, nn.Parameter(placed(parameter, placement)))


model = distribute_module(Decoder(), mesh, place)
angles = torch.outer(torch.arange(LENGTH), 10.0 ** -torch.arange(WIDTH // HEADS // 2)).repeat(1, 2)
given = {"is_causal": True}
if sys.argv[1] == "mask":
    given = {"attn_mask": placed(torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril())}
tokens, targets = (placed(torch.randint(ROWS, (2, LENGTH))) for _ in range(2))
logits = model(tokens, (placed(angles.cos()), placed(angles.sin())), given)
nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
if "step" in sys.argv[2:]:
    torch.optim.AdamW(model.parameters(), foreach=True).step()
