#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Asks an installed PyTorch what its operators compute and writes inputs and outputs as lines of
JSON that tests/sim/operators reads.

Needs Python 3 and torch (CPU use only); no test runs it. The same PyTorch writes the same bytes.
Per line: name, in (tensors, lists of them, nulls), attr, out. A tensor is {"d": dtype, "s": shape,
"v": values}; values that JSON lacks are texts. Cases: common_cases.py.
"""

import argparse
import json

PARSER = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
PARSER.add_argument("file", help="where the lines go: tests/torch/data/operator_values.jsonl")
FILE = PARSER.parse_args().file  # before torch, which --help need not have

import torch
import common_cases

NAMES = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "bool",
}
DTYPES = {name: dtype for dtype, name in NAMES.items()}


def number(value, dtype):
    if isinstance(value, (bool, int)):
        return int(value)
    if value != value or value in (float("inf"), float("-inf")):
        return str(value)
    short = float(f"{value:.{12 if dtype == torch.float64 else 7}g}")
    return int(short) if short == int(short) and abs(short) < 1e6 else short


def written(tensor):
    if tensor is None:
        return None
    if isinstance(tensor, (list, tuple)):
        return [written(one) for one in tensor]
    flat = tensor.detach().reshape(-1).tolist()
    return {
        "d": NAMES[tensor.dtype],
        "s": list(tensor.shape),
        "v": [number(value, tensor.dtype) for value in flat],
    }


def is_tensor(argument):
    return "Tensor" in str(argument.type)


def call(name, inputs, attributes):
    """The operator of ATen's schema, tensors in its order, all else by name."""
    base, _, overload = name.partition(".")
    op = getattr(getattr(torch.ops.aten, base), overload or "default")
    positional, named, rest = [], {}, list(inputs)
    for argument in op._schema.arguments:
        value = None
        if argument.name in attributes:
            value = attributes[argument.name]
            if argument.name in ("dtype", "input_dtype") and value is not None:
                value = DTYPES[value]
            if value in ("inf", "-inf"):
                value = float(value)
        elif is_tensor(argument) and rest:
            value = rest.pop(0)
        elif argument.has_default_value():
            value = argument.default_value
        elif not is_tensor(argument) and "Optional" not in str(argument.type):
            raise ValueError(f"{name}: no {argument.name}")
        if argument.kwarg_only:
            named[argument.name] = value
        else:
            positional.append(value)
    if rest:
        raise ValueError(f"{name}: {len(rest)} tensors too many")
    return op(*positional, **named)


def cloned(value):
    if isinstance(value, (list, tuple)):
        return [cloned(one) for one in value]
    return None if value is None else value.clone()


def outputs_of(name, inputs, attributes, by):
    """What the call, or `by` in its place, returns, or writes where it returns nothing."""
    own = cloned(inputs)
    out = by(*own) if by else call(name, own, attributes)
    if out is None:  # in place over lists
        out = own[0] if name.startswith("_foreach") else [one for list_ in own[:5] for one in list_]
    if isinstance(out, torch.Tensor):
        out = [out]
    return [written(one if isinstance(one, torch.Tensor) else None) for one in out]


def main():
    torch.set_num_threads(1)
    count = 0
    with open(FILE, "w", encoding="ascii", newline="\n") as out:
        version = torch.__version__.split("+")[0]
        head = (
            f"Written by tests/torch/oracle/operator_values.py with torch {version}; do not edit."
        )
        out.write(json.dumps({"comment": head}) + "\n")
        for name, inputs, attributes, by in common_cases.cases():
            try:
                line = {
                    "name": name,
                    "in": written(inputs),
                    "attr": attributes,
                    "out": outputs_of(name, inputs, attributes, by),
                }
            except Exception as error:
                raise RuntimeError(
                    f"{name} {[getattr(i, 'shape', i) for i in inputs]} {attributes}"
                ) from error
            out.write(json.dumps(line, separators=(",", ":")) + "\n")
            count += 1
    print(f"{FILE}: {count} cases")


if __name__ == "__main__":
    main()
