# SPDX-License-Identifier: BSD-3-Clause
"""The arguments of a call as a trace has them: operators' names, dtypes, placements, arguments."""

import math

import torch
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._dtensor_spec import DTensorSpec

DTYPES = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "f8e4m3",
    torch.float8_e5m2: "f8e5m2",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "bool",
    torch.complex64: "c64",
}

# Arguments about where and how memory is laid out, which do not affect what is computed.
UNSAID = {"layout", "device", "pin_memory", "memory_format", "non_blocking", "generator"}

# Operator: its argument that holds indices, and the length of the dim that they index.
INDEXED = {
    "embedding": ("indices", lambda given: given["weight"].shape[0]),
    "embedding_dense_backward": ("indices", lambda given: given["num_weights"]),
    "nll_loss_forward": ("target", lambda given: given["self"].shape[-1]),
    "nll_loss_backward": ("target", lambda given: given["self"].shape[-1]),
    "nll_loss2d_forward": ("target", lambda given: given["self"].shape[1]),
    "nll_loss2d_backward": ("target", lambda given: given["self"].shape[1]),
}
for _name in ("gather", "index_select", "scatter", "scatter_add", "index_add", "index_fill"):
    INDEXED[_name] = ("index", lambda given: given["self"].shape[given["dim"]])


def call_name(func):
    """ATen's name without `aten.`, with the overload after a dot; other namespaces are kept."""
    name = func._schema.name.removeprefix("aten::")
    overload = func._schema.overload_name
    return f"{name}.{overload}" if overload else name


def base_name(func):
    return func._schema.name.split("::")[1]


def placements_text(spec):
    """As PyTorch prints them; the order of shards only if it is not left to right."""
    order = spec.shard_order
    if order and any(list(each.mesh_dims) != sorted(each.mesh_dims) for each in order):
        return DTensorSpec.format_shard_order_str(spec.placements, order)
    return "".join(map(str, spec.placements))


def tensor_text(tensor, mesh):
    """The placements of a tensor ("R" on every axis if it has none), or None."""
    if tensor is None:
        return None
    return placements_text(tensor._spec) if isinstance(tensor, DTensor) else "R" * mesh.ndim


def plain(value):
    """An argument that is not a tensor, as JSON; a number that JSON does not have, as text."""
    if isinstance(value, torch.dtype):
        return DTYPES.get(value, str(value))
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, torch.SymInt)):
        return int(value)
    if isinstance(value, (float, torch.SymFloat)):
        return float(value) if math.isfinite(value) else str(float(value))
    return str(value)


def takes_tensors(argument):
    return "Tensor" in str(argument.type)


def bound(func, args, kwargs):
    """Every argument of the schema with its value, and whether it was given by position."""
    for at, argument in enumerate(func._schema.arguments):
        if at < len(args):
            yield argument, args[at], True
        else:
            yield argument, kwargs.get(argument.name, argument.default_value), False


def tensors_of(value):
    """One tensor, None, or a list of both, as a list. A number becomes None."""
    values = value if isinstance(value, (list, tuple)) else [value]
    return [each if isinstance(each, torch.Tensor) else None for each in values]


def is_number(value):
    return isinstance(value, (bool, int, float, torch.SymInt, torch.SymFloat))


def attributes(func, args, kwargs):
    """Arguments that are neither tensors nor the default; also numbers where a tensor could be
    given."""
    out = {}
    for argument, value, _ in bound(func, args, kwargs):
        if argument.name in UNSAID or (takes_tensors(argument) and not is_number(value)):
            continue
        default = argument.default_value
        # 2.0 is recorded even if the default is 2: norm partials print it.
        if argument.has_default_value() and value == default and type(value) is type(default):
            continue
        out[argument.name] = plain(value)
    return out


def indices(func, args, kwargs):
    """(tensor of indices, length of the dim that it indexes), for each that the operator has."""
    given = {argument.name: value for argument, value, _ in bound(func, args, kwargs)}
    name = base_name(func).rstrip("_")
    if name in INDEXED:
        argument, length = INDEXED[name]
        yield given[argument], length(given)
    if name in ("index", "index_put", "_index_put_impl"):
        for dim, tensor in enumerate(given["indices"]):
            if tensor is not None:
                yield tensor, given["self"].shape[dim]


def sizes(outputs):
    """Shapes and dtypes of the outputs, for operators that the trace's reader has no rule for."""
    if any(each is not None and each.dtype not in DTYPES for each in outputs):
        return {}
    shapes = [None if each is None else list(each.shape) for each in outputs]
    dtypes = [None if each is None else DTYPES[each.dtype] for each in outputs]
    return {"out_shape": shapes, "out_dtype": dtypes}
