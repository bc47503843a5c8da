# SPDX-License-Identifier: BSD-3-Clause
"""Calls of operators in few letters.

    call("addmm", "2x2", "48@RR 64x32@S0S1 32x48@RS0", alpha=2)

A tensor is [DTYPE.]SHAPE[<BELOW]@PLACEMENTS: f32 where no dtype is written, "." for the shape of a
scalar, "~" behind the placements where a view made the _StridedShard, "-" for an absent tensor,
"[A B]" for a list. Placements: R S0 P Pavg Pmax Pmin Pproduct _S(0,2) N2, and M(32,12;0) for the
masked partial over dim 0 of that shape.
"""

import re

SHORT = re.compile(
    r"R|_S\((?P<sd>\d+),(?P<sf>\d+)\)|S(?P<d>\d)|P(?P<op>avg|max|min|product)?|N(?P<n>inf|[\d.]+)"
    r"|M\((?P<m>[\d,]*);(?P<md>\d+)\)"
)


def written(short):
    """The placements as PyTorch prints them."""
    out, end = "", 0
    for found in SHORT.finditer(short):
        assert found.start() == end, short
        end, part = found.end(), found.groupdict()
        if found.group() == "R":
            out += "R"
        elif part["sd"] is not None:
            out += f"_S({part['sd']}, {part['sf']})"
        elif part["d"] is not None:
            out += f"S({part['d']})"
        elif part["n"] is not None:
            out += f"_NormP({part['n']})"
        elif part["md"] is not None:
            sizes = ", ".join(part["m"].split(","))
            out += f"MaskP(sum, torch.Size([{sizes}]), {part['md']})"
        else:
            out += f"P({part['op'] or 'sum'})"
    assert end == len(short) and short, short
    return out


def tensor(text):
    if text == "-":
        return None
    what, placements = text.split("@")
    found = re.fullmatch(r"(?:([a-z]+\d*[a-z0-9]*)\.(?=.))?(\.|[\dx]+)(?:<(\d+))?", what)
    assert found, text
    dtype, shape, below = found.groups()
    out = {
        "shape": [] if shape == "." else [int(n) for n in shape.split("x")],
        "dtype": dtype or "f32",
        "placements": written(placements.rstrip("~")),
    }
    if below:
        out["below"] = int(below)
    if placements.endswith("~"):
        out["of_view"] = True
    return out


def entries(text, one):
    """What `one` makes of every word of `text`, those in brackets as a list."""
    out, into = [], None
    for token in text.replace("[", " [ ").replace("]", " ] ").split():
        if token == "[":
            into = []
        elif token == "]":
            out.append(into)
            into = None
        else:
            (out if into is None else into).append(one(token))
    return out


def call(name, mesh, inputs, **attr):
    loss_parallel = attr.pop("loss_parallel", False)
    out = {"call": name, "mesh": mesh, "in": entries(inputs, tensor)}
    if attr:
        out["attr"] = attr
    if loss_parallel:
        out["loss_parallel"] = True
    return out
