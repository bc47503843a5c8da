# SPDX-License-Identifier: BSD-3-Clause
"""Calls of operators written in few letters, and the arguments that PyTorch is called with.

    call("add.Tensor maximum", "16x8@S0 8@R", "16x8@P 16x8@R mesh=2", alpha=2)
    call("add.Tensor: 16x8@S0 8@R | 16x8@P 16x8@R alpha=2", "relu: 16x8@P")

The first form stands for each name with each text, the second for one such call per line, which is
"NAMES: TEXT | TEXT". A text holds tensors in the order of the operator's arguments, "-" for an
absent one, "[A B]" for a list, and behind them attributes that belong to this text alone.
A tensor is [DTYPE.]SHAPE[<BELOW]@PLACEMENTS. The dtype is f32 where none is written, the shape of a
scalar is ".", integers are drawn from [0, BELOW), and "~" at the end means that a view made the
_StridedShard. placements_of() reads the placements; M is the masked partial that an embedding of 32
rows of 12 leaves. The mesh is 4 where none is written.
"""

import itertools
import re

import torch
from placements import device_mesh, local_shape, placements_of, spec, text
from torch.distributed.tensor import DTensor
from torch.utils._dtype_abbrs import dtype_abbrs

DTYPES = {abbreviation: dtype for dtype, abbreviation in dtype_abbrs.items()}
DTYPES["bool"] = torch.bool
TENSOR = re.compile(r"(?:([a-z]+\d\w*)\.)?([^<>!]*)(!?)(?:>([-.\d]+))?(?:<([-.\w]+))?")
MASK = "MaskP(sum, torch.Size([32, 12]), 0)"


def entries(words, one):
    """What `one` makes of every word, those in brackets as a list."""
    out, into = [], None
    for word in words.replace("[", " [ ").replace("]", " ] ").split():
        if word == "[":
            into = []
        elif word == "]":
            out.append(into)
            into = None
        else:
            (out if into is None else into).append(one(word))
    return out


def asked(make, groups):
    """What make(name, inputs, attributes) returns for all that the functions in `groups` ask for;
    they are given `ask`. An attribute in a text stays a text."""
    out = []

    def ask(names, *inputs, **attributes):
        if ": " in names:
            for line in (names, *inputs):
                names, _, texts = line.partition(": ")
                ask(names, *texts.split(" | "), **attributes)
            return
        for name, words in itertools.product(names.split(), inputs):
            own = {}
            if isinstance(words, str):
                own = dict(word.split("=", 1) for word in words.split() if "=" in word)
                words = " ".join(word for word in words.split() if "=" not in word)
            out.append(make(name, words, {**own, **attributes}))

    for group in groups:
        group(ask)
    return out


def foreach(ask, tensors, *lines):
    """Lines of _foreach operators without that prefix; L stands for the list of tensors."""
    for line in lines:
        names, _, texts = line.partition(": ")
        names = " ".join("_foreach_" + name for name in names.split())
        ask(names, *texts.replace("L", tensors).split(" | "))


def value_of(words, sizes):
    """The value of an attribute in a text, in which letters are sizes; f64 and the like stay."""
    try:
        return eval(words, {"__builtins__": {}}, sizes)
    except (NameError, SyntaxError):
        return words


def valued(attributes, sizes={}):
    return {name: value_of(value, sizes) if isinstance(value, str) else value
            for name, value in attributes.items()}


def tensor(word):
    if word == "-":
        return None
    what, placements = word.rstrip("~").split("@")
    dtype, shape, _, _, below = TENSOR.fullmatch(what).groups()
    out = {
        "shape": [] if shape == "." else [int(n) for n in shape.split("x")],
        "dtype": dtype or "f32",
        "placements": text(placements_of(placements.replace("M", MASK))),
    }
    if below:
        out["below"] = int(below)
    if word.endswith("~"):
        out["of_view"] = True
    return out


def call_of(name, words, attributes):
    attr = valued(attributes)
    mesh, loss_parallel = str(attr.pop("mesh", 4)), attr.pop("loss_parallel", False)
    out = {"call": name, "mesh": mesh, "in": entries(words, tensor)}
    if attr:
        out["attr"] = attr
    if loss_parallel:
        out["loss_parallel"] = True
    return out


def mesh_of(words):
    return device_mesh(tuple(int(n) for n in words.split("x")))


def distributed(entry, mesh, real):
    """The DTensor on rank 0. `real`: with values, for operators that look at them."""
    if entry is None:
        return None
    if isinstance(entry, list):
        return [distributed(one, mesh, real) for one in entry]
    placements, dtype = placements_of(entry["placements"]), DTYPES[entry["dtype"]]
    side = spec(mesh, entry["shape"], placements, dtype, by_view=entry.get("of_view", False))
    shape = local_shape(side)
    if not real:
        local = torch.empty(shape, dtype=dtype, device="meta")
    elif dtype.is_floating_point:
        local = (torch.rand(shape) * 0.8 + 0.1).to(dtype)  # good for logarithms and probabilities
    else:
        below = 2 if dtype == torch.bool else entry.get("below", 7)
        local = torch.randint(0, below, shape).to(dtype)
    return DTensor(local, side, requires_grad=False)


def operator_of(name):
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def is_tensor(argument):
    return "Tensor" in str(argument.type)


def plain(value):
    """An attribute as ATen has it: JSON has neither dtypes nor infinity."""
    if isinstance(value, str):
        return DTYPES.get(value, float(value) if value.lstrip("-") in ("inf", "nan") else value)
    return value


def bound(op, tensors, attributes):
    """The arguments as PyTorch hands them to __torch_dispatch__, without trailing defaults."""
    left, attr, args, kwargs = list(tensors), dict(attributes), [], {}
    for argument in op._schema.arguments:
        has_default = argument.has_default_value()
        value = default = argument.default_value if has_default else None
        if argument.name in attr:
            value = plain(attr.pop(argument.name))
        elif is_tensor(argument) and left:
            value = left.pop(0)
        same = has_default and not isinstance(value, torch.Tensor) and value == default
        same = same and isinstance(value, float) == isinstance(default, float)  # 2.0 is not 2
        if not argument.kwarg_only:
            args.append((value, same))
        elif not same:
            kwargs[argument.name] = value
    assert not left and not attr, f"arguments that {op._schema} does not have"
    while args and args[-1][1]:
        args.pop()
    return tuple(value for value, _ in args), kwargs


def arguments_of(call, real):
    op = operator_of(call["call"])
    tensors = distributed(call["in"], mesh_of(call["mesh"]), real)
    return op, *bound(op, tensors, call.get("attr", {}))


def flat(listed):
    out = []
    for entry in listed:
        out += flat(entry) if isinstance(entry, (list, tuple)) else [entry]
    return out


def tensors_of(op, args, kwargs):
    """Tensor arguments in the operator's order, flat; nulls are kept, trailing ones are not."""
    named = dict(zip((argument.name for argument in op._schema.arguments), args)) | kwargs
    out = flat(named.get(argument.name) for argument in op._schema.arguments if is_tensor(argument))
    while out and out[-1] is None:
        out.pop()
    return out
