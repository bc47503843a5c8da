# SPDX-License-Identifier: BSD-3-Clause
"""The building blocks of the models: batch 2, sequence 8, width 32, 8 heads, feed-forward 64."""

import torch
from torch import nn

WIDTH, HEADS, HIDDEN = 32, 8, 64


class MLP(nn.Module):
    def __init__(self, bias=True):
        super().__init__()
        self.w1 = nn.Linear(WIDTH, HIDDEN, bias=bias)
        self.w2 = nn.Linear(HIDDEN, WIDTH, bias=bias)

    def forward(self, x):
        return self.w2(torch.relu(self.w1(x)))


class Attention(nn.Module):
    """Works on a rank's own heads if the projections return local tensors, and on all heads if they
    return DTensors."""

    def __init__(self):
        super().__init__()
        self.wq = nn.Linear(WIDTH, WIDTH, bias=False)
        self.wk = nn.Linear(WIDTH, WIDTH, bias=False)
        self.wv = nn.Linear(WIDTH, WIDTH, bias=False)
        self.wo = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        heads = []
        for project in (self.wq, self.wk, self.wv):
            y = project(x)
            heads.append(y.view(*y.shape[:2], -1, WIDTH // HEADS).transpose(1, 2))
        q, k, v = heads
        scores = torch.softmax(q @ k.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5, dim=-1)
        y = (scores @ v).transpose(1, 2)
        return self.wo(y.reshape(*y.shape[:2], -1))


class Layer(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.attention_norm = norm(WIDTH)
        self.attention = Attention()
        self.mlp_norm = norm(WIDTH)
        self.mlp = MLP(bias=False)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))
