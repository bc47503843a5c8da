# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch's operators compute from small tensors of values that every dtype holds exactly.

A case is an operator with its tensors and attributes, written like the calls in calls.py; a list of
tensors may take the place of a text. A tensor in a text is [DTYPE.]SHAPE and what it holds: nothing
written, eighths from -2 to 2 or integers from 0 to 4; >LOW<HIGH, eighths from LOW to HIGH or
integers from LOW to below HIGH; "!", distinct eighths, so that a maximum has one place; {VALUES}.
"""

import math
import random

import torch
from calls import DTYPES, TENSOR, asked, bound, entries, operator_of, valued
from torch.utils._dtype_abbrs import dtype_abbrs

DRAW = random.Random(13)


def tensor(word):
    if word == "-":
        return None
    what, _, listed = word.partition("{")
    dtype, shape, is_apart, low, high = TENSOR.fullmatch(what).groups()
    dtype = DTYPES[dtype or "f32"]
    shape = [int(n) for n in shape.split("x")] if shape.strip(".") else []
    count = math.prod(shape)
    if listed:
        values = [float(value) for value in listed.rstrip("}").split(",")]
    elif is_apart:
        values = [(i - count // 2) / 8 for i in range(count)]
        DRAW.shuffle(values)
    elif dtype.is_floating_point:
        low, high = (int(8 * float(end)) for end in (low or -2, high or 2))
        values = [DRAW.randint(low, high) / 8 for _ in range(count)]
    else:
        below = int(high or (2 if dtype == torch.bool else 5))
        values = [DRAW.randrange(int(low or 0), below) for _ in range(count)]
    return torch.tensor(values, dtype=dtype).reshape(shape)


def drawn(entry):
    """The tensors of a list that holds texts, tensors, None and lists of these."""
    if isinstance(entry, str):
        return entries(entry, tensor)[0]
    return [drawn(one) for one in entry] if isinstance(entry, list) else entry


def case(name, inputs, attributes):
    tensors = entries(inputs, tensor) if isinstance(inputs, str) else drawn(inputs)
    by = attributes.pop("by", None)
    return name, tensors, valued(attributes), by


def number(value, dtype):
    if isinstance(value, (bool, int)):
        return int(value)
    if not math.isfinite(value):
        return str(value)
    short = float(f"{value:.{12 if dtype == torch.float64 else 7}g}")
    return int(short) if short == int(short) and abs(short) < 1e6 else short


def written(value):
    if isinstance(value, (list, tuple)):
        return [written(one) for one in value]
    if value is None:
        return None
    dtype = value.dtype
    flat = value.detach().reshape(-1).tolist()
    return {
        "d": "bool" if dtype == torch.bool else dtype_abbrs[dtype],
        "s": list(value.shape),
        "v": [number(one, dtype) for one in flat],
    }


def cloned(value):
    if isinstance(value, list):
        return [cloned(one) for one in value]
    return None if value is None else value.clone()


def outputs_of(name, inputs, attributes, by):
    """What the call, or `by` in its place, returns; what it writes where it returns nothing."""
    own, op = cloned(inputs), operator_of(name)
    if by:
        out = by(*own)
    else:
        args, kwargs = bound(op, own, attributes)
        out = op(*args, **kwargs)
    if out is None:  # in place over lists
        out = own[0] if name.startswith("_foreach") else sum(own[:5], [])
    out = [out] if isinstance(out, torch.Tensor) else out
    return [written(one if isinstance(one, torch.Tensor) else None) for one in out]


def operator_values():
    import common_cases
    import rare_cases

    torch.set_num_threads(1)
    for name, inputs, attr, by in asked(case, [*common_cases.ALL, *rare_cases.ALL]):
        out = outputs_of(name, inputs, attr, by)
        yield {"name": name, "in": written(inputs), "attr": attr, "out": out}
