# SPDX-License-Identifier: BSD-3-Clause
"""A call as plain data, {"call", "mesh", "in", "attr"}, made into what PyTorch is called with.

"in" has the tensors in the order of the operator's arguments, "attr" all else by name.
"""

import math
import re

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor._ops._math_ops import _NormPartial
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
from torch.distributed.tensor.placement_types import _MaskPartial, _StridedShard
from torch.utils._dtype_abbrs import dtype_abbrs

DTYPES = {abbreviation: dtype for dtype, abbreviation in dtype_abbrs.items()}
KINDS = re.compile(
    r"R|S\((\d+)\)|_S\((\d+), (\d+)\)|P\((\w+)\)|_NormP\(([^)]*)\)"
    r"|MaskP\(sum, torch\.Size\(\[([^\]]*)\]\), (\d+)\)"
)
MESHES = {}


def number(text):
    value = float(text)
    return int(value) if value.is_integer() else value


def placements_of(text):
    """Reads placements as str() prints them, one behind the other."""
    found, end = [], 0
    for match in KINDS.finditer(text):
        assert match.start() == end, text
        end = match.end()
        shard, dim, factor, op, norm, size, offset = match.groups()
        if shard is not None:
            found.append(Shard(int(shard)))
        elif dim is not None:
            found.append(_StridedShard(int(dim), split_factor=int(factor)))
        elif op is not None:
            found.append(Partial(op))
        elif norm is not None:
            found.append(_NormPartial(norm_type=number(norm)))
        elif size is not None:
            shape = torch.Size(int(n) for n in size.split(",") if n.strip())
            found.append(_MaskPartial(offset_shape=shape, offset_dim=int(offset)))
        else:
            found.append(Replicate())
    assert end == len(text), text
    return tuple(found)


def text_of(placements):
    return "".join(str(p) for p in placements)


def mesh_of(text):
    if text not in MESHES:
        sizes = [int(n) for n in text.split("x")]
        MESHES[text] = DeviceMesh("cpu", torch.arange(math.prod(sizes)).view(sizes))
    return MESHES[text]


def spec_of(tensor, mesh):
    shape, dtype = torch.Size(tensor["shape"]), DTYPES[tensor["dtype"]]
    stride = torch.empty(shape, dtype=dtype, device="meta").stride()
    return DTensorSpec(
        mesh,
        placements_of(tensor["placements"]),
        tensor_meta=TensorMeta(shape, stride, dtype),
        use_strided_shard_as_shard_order=False if tensor.get("of_view") else None,
    )


def local_of(tensor, spec, real):
    """The tensor on rank 0; its values matter only where the operator looks at them."""
    shape, _ = compute_local_shape_and_global_offset(spec.shape, spec.mesh, spec.placements)
    dtype = spec.tensor_meta.dtype
    if not real:
        return torch.empty(shape, dtype=dtype, device="meta")
    if dtype.is_floating_point:
        return (torch.rand(shape) * 0.8 + 0.1).to(dtype)  # good for logarithms and probabilities
    below = 2 if dtype == torch.bool else tensor.get("below", 7)
    return torch.randint(0, below, shape).to(dtype)


def wrapped(entry, mesh, real):
    if entry is None:
        return None
    if isinstance(entry, list):
        return [wrapped(e, mesh, real) for e in entry]
    spec = spec_of(entry, mesh)
    return DTensor(local_of(entry, spec, real), spec, requires_grad=False)


def operator_of(name):
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def is_tensor(argument):
    return "Tensor" in str(argument.type)


def plain(value):
    """An attribute as ATen has it: JSON knows neither dtypes nor infinity."""
    if isinstance(value, str):
        return DTYPES.get(value, float(value) if value.lstrip("-") in ("inf", "nan") else value)
    return value


def arguments_of(call, real):
    """The call as PyTorch hands it to __torch_dispatch__."""
    op, mesh = operator_of(call["call"]), mesh_of(call["mesh"])
    tensors, attr = list(call["in"]), dict(call.get("attr", {}))
    args, kwargs = [], {}
    for argument in op._schema.arguments:
        default = argument.default_value if argument.has_default_value() else None
        if is_tensor(argument):
            value = wrapped(tensors.pop(0), mesh, real) if tensors else None
            if real and call.get("loss_parallel") and argument.name == "total_weight":
                value = value.to_local()  # as the handler of the forward returns it
        elif argument.name in attr:
            value = plain(attr.pop(argument.name))
        else:
            value = default
        same = argument.has_default_value() and not isinstance(value, DTensor) and value == default
        same = same and isinstance(value, float) == isinstance(default, float)  # 2.0 is not 2
        if not argument.kwarg_only:
            args.append((value, same))
        elif not same:
            kwargs[argument.name] = value
    assert not tensors and not attr, f"{call['call']}: arguments that {op._schema} does not have"
    while args and args[-1][1]:
        args.pop()
    return op, tuple(value for value, _ in args), kwargs


def flat(entries):
    out = []
    for entry in entries:
        out += flat(entry) if isinstance(entry, (list, tuple)) else [entry]
    return out


def trimmed(entries):
    while entries and entries[-1] is None:
        entries.pop()
    return entries


def tensors_of(op, args, kwargs):
    """Tensor arguments in the operator's order, flat; nulls are kept, trailing ones are not."""
    out = []
    for i, argument in enumerate(op._schema.arguments):
        if not is_tensor(argument):
            continue
        if argument.kwarg_only:
            value = kwargs.get(argument.name)
        else:
            value = args[i] if i < len(args) else None
        out += flat(value) if isinstance(value, (list, tuple)) else [value]
    return trimmed(out)
