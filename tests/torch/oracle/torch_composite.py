# SPDX-License-Identifier: BSD-3-Clause
"""What becomes of a composite operator: the operators that reach dispatch and what each decides."""

import torch
from torch.distributed.tensor import DTensor
from torch.utils._dtype_abbrs import dtype_abbrs
from torch.utils._python_dispatch import TorchDispatchMode
from torch_arguments import arguments_of, flat, is_tensor, tensors_of, text_of
from decisions import decision, first_sentence, outputs_of


def shown(tensor):
    if not isinstance(tensor, DTensor):
        return None
    spec = tensor._spec
    out = {
        "shape": list(spec.shape),
        "dtype": dtype_abbrs[spec.tensor_meta.dtype],
        "placements": text_of(spec.placements),
    }
    if "_S" in out["placements"] and not spec.use_strided_shard_as_shard_order:
        out["of_view"] = True
    return out


def attributes(op, args, kwargs):
    out = {}
    for i, argument in enumerate(op._schema.arguments):
        if not is_tensor(argument):
            if argument.name in kwargs or (i < len(args) and not argument.kwarg_only):
                value = kwargs[argument.name] if argument.name in kwargs else args[i]
                out[argument.name] = dtype_abbrs[value] if isinstance(value, torch.dtype) else value
    return {k: v for k, v in out.items() if isinstance(v, (int, float, str, list))}


class Parts(TorchDispatchMode):
    """Asks for the decision of every operator that arrives, then lets it run."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tensors = tensors_of(op, args, kwargs)
        if any(isinstance(t, DTensor) for t in tensors):
            name = op.name().removeprefix("aten::")
            expect = decision(op, args, kwargs)
            part = {"call": name, "in": [shown(t) for t in tensors]}
            self.calls.append({**part, "attr": attributes(op, args, kwargs), "expect": expect})
        return op(*args, **kwargs)


def answer(call):
    op, args, kwargs = arguments_of(call, real=True)
    torch.manual_seed(0)
    parts = Parts()
    try:
        with torch.no_grad(), parts:
            out = op(*args, **kwargs)
    except Exception as error:
        return {"refused": first_sentence(error), "calls": parts.calls}
    results = flat(out if isinstance(out, (list, tuple)) else [out])
    specs = [r._spec if isinstance(r, DTensor) else None for r in results]
    moves = [
        {"call": at, **move}
        for at, part in enumerate(parts.calls)
        for move in part["expect"].get("implicit", [])
    ]
    return {**outputs_of(specs), "implicit": moves, "calls": parts.calls}
