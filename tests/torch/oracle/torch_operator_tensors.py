# SPDX-License-Identifier: BSD-3-Clause
"""Small tensors of values that every dtype holds exactly, drawn in order, and calls with them."""

import random

import torch

DRAW = random.Random(13)
INF = float("inf")
F32, F64, BF16, F16 = torch.float32, torch.float64, torch.bfloat16, torch.float16
I64, I32, U8, I8, BOOL = torch.int64, torch.int32, torch.uint8, torch.int8, torch.bool


def count_of(shape):
    count = 1
    for size in shape:
        count *= size
    return count


def f(*shape, dtype=F32, low=-2.0, high=2.0):
    """Eighths from low to high."""
    values = [DRAW.randint(int(low * 8), int(high * 8)) / 8 for _ in range(count_of(shape))]
    return torch.tensor(values, dtype=dtype).reshape(shape)


def apart(*shape, dtype=F32):
    """Eighths, no two the same, so that a place is the only one."""
    values = [(i - count_of(shape) // 2) / 8 for i in range(count_of(shape))]
    DRAW.shuffle(values)
    return torch.tensor(values, dtype=dtype).reshape(shape)


def i(*shape, low=0, below=5, dtype=I64):
    values = [DRAW.randrange(low, below) for _ in range(count_of(shape))]
    return torch.tensor(values, dtype=dtype).reshape(shape)


def b(*shape):
    return i(*shape, below=2).bool()


def scalar(value, dtype=F32):
    return torch.tensor(value, dtype=dtype)


def case(name, *inputs, by=None, **attributes):
    return name, list(inputs), attributes, by
