# SPDX-License-Identifier: BSD-3-Clause
"""Calls made from the rows of common_rows: systematically on two meshes, or drawn at random."""

import itertools
import math
import random
import re
import types

import calls
import common_rows
import torch_rows_carried
import rare_rows
import torch_rows_images

MESHES = "2 3 4 8 2x2 2x3 3x2 2x4 4x2 2x2x2 3x1x2".split()
SIZES = [1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 9, 12, 16, 24]
EVEN = {"a": 16, "b": 8, "c": 12, "d": 4, "e": 8, "h": 8, "k": 32, "m": 64, "n": 16, "s": 16}
EVEN.update({"t": 16, "v": 32})
PARTIALS = ["P(sum)", "P(sum)", "P(avg)", "P(max)", "P(min)", "P(product)"]
DIM = re.compile(r"\(([a-z]+)\)|\{(\w+)\}|([a-z])|1")


class Draw(random.Random):
    """Uses random() alone, which no version of Python changes."""

    def one(self, among):
        return among[int(self.random() * len(among))]

    def chance(self, probability):
        return self.random() < probability


def rows(every=common_rows.every):
    out = []
    every(lambda name, inputs, **attr: out.append((name, inputs, attr)))
    return out


def parsed(inputs):
    """Per entry None, a list, or (dtype, [text of a dim], below)."""

    def one(token):
        if token == "-":
            return None
        found = re.fullmatch(r"(?:([a-z]+\d\w*)\.(?=.|$))?([^<]*)(?:<(\w+))?", token)
        dtype, dims, below = found.groups()
        return dtype or "f32", [m.group() for m in DIM.finditer(dims)], below

    return calls.entries(inputs, one)


def size_of(dim, sizes):
    product, fixed, letter = DIM.fullmatch(dim).groups()
    if fixed is not None:
        return 2 * sizes["a"] if fixed == "cat" else int(fixed)
    return math.prod(sizes[x] for x in product or letter or "")


def flat(entries):
    for entry in entries:
        if isinstance(entry, list):
            yield from flat(entry)
        elif entry is not None:
            yield entry


def letters_of(entries):
    return sorted({x for _, dims, _ in flat(entries) for d in dims for x in d if x.isalpha()})


def alike(entry, letter):
    """The placement that follows one letter: a shard of the dim that it leads, else R."""
    for i, dim in enumerate(entry[1]):
        if dim.strip("(").startswith(letter) and not dim.startswith("{"):
            return f"S({i})"
    return "R"


def any_placement(draw, entry, strided=0.0):
    dtype, dims, below = entry
    kinds = ["R"] + [f"S({i})" for i in range(len(dims))] * 2
    if below is None and dtype[0] in "fb" and dtype != "b8":
        kinds += PARTIALS[: 2 + len(PARTIALS) // 2] if draw.chance(0.7) else PARTIALS
    elif below is None or draw.chance(0.02):
        kinds += ["P(sum)", "P(max)", "P(min)"] if dtype != "b8" else []
    if dims and draw.chance(strided):
        return f"_S({int(draw.random() * len(dims))}, {draw.one([2, 3, 4])})"
    return draw.one(kinds)


def placed(draw, entries, letters, axes, strided):
    """Placements per tensor, axis by axis: all follow a letter, with one or two put elsewhere."""
    tensors = list(flat(entries))
    out = ["" for _ in tensors]
    for _ in range(axes):
        letter = draw.one(letters + [None]) if letters else None
        column = [alike(t, letter) if letter else "R" for t in tensors]
        for _ in range(draw.one([0, 1, 1, 2])):
            at = int(draw.random() * len(tensors))
            column[at] = any_placement(draw, tensors[at], strided)
        if letter is None and draw.chance(0.3):
            column = [any_placement(draw, t, strided) for t in tensors]
        out = [so_far + new for so_far, new in zip(out, column)]
    return out


def is_legal(placements):
    """One kind of partial on a tensor, sum with avg excepted."""
    kinds = set(re.findall(r"P\((\w+)\)", placements))
    return len(kinds) < 2 or kinds == {"sum", "avg"}


def made(row, mesh, sizes, placements, of_view=False):
    name, inputs, attr = row
    where, letters = iter(placements), types.SimpleNamespace(**sizes)

    def tensor(entry):
        if entry is None:
            return None
        if isinstance(entry, list):
            return [tensor(e) for e in entry]
        dtype, dims, below = entry
        shape = [size_of(d, sizes) for d in dims]
        out = {"shape": shape, "dtype": dtype, "placements": next(where)}
        if below:
            out["below"] = sizes[below] if below in sizes else int(below)
        if of_view and "_S" in out["placements"]:
            out["of_view"] = True
        return out

    call = {"call": name, "mesh": mesh, "in": [tensor(e) for e in parsed(inputs)]}
    attr = {k: v(letters) if callable(v) else v for k, v in attr.items()}
    return {**call, "attr": attr} if attr else call


def systematic(row, mesh, count):
    """What a row may meet on a mesh: every letter followed, every tensor moved away from there."""
    axes, entries = len(mesh.split("x")), parsed(row[1])
    letters, tensors = letters_of(entries), list(flat(entries))
    draw = Draw(f"{row[0]} {row[1]} {sorted(row[2])} {mesh}")
    found = []
    if axes == 1:
        found = [[alike(t, letter) for t in tensors] for letter in letters]
        for at, entry in enumerate(tensors):
            kinds = PARTIALS[1:] if len(tensors) == 1 else PARTIALS[1:2]
            if entry[0][0] in "fb" and entry[0] != "b8" and entry[2] is None:
                found += [["R"] * at + [k] + ["R"] * (len(tensors) - at - 1) for k in kinds]
    unique, tries = [], 0
    while len(unique) < count and tries < 60:
        tries += 1
        new = found.pop(0) if found else placed(draw, entries, letters, axes, 0.04)
        if new not in unique and all(is_legal(p) for p in new):
            unique.append(new)
    return [made(row, mesh, EVEN, new, draw.chance(0.5)) for new in unique]


def wide():
    for row in rows():
        tensors = len(list(flat(parsed(row[1]))))
        yield from systematic(row, "4", min(9, 3 + 2 * tensors))
        yield from systematic(row, "2x2", min(4, 1 + tensors))


def short(every=common_rows.every):
    """Every letter followed by all tensors, on more ranks than it has elements."""
    for row in rows(every):
        entries = parsed(row[1])
        for letter in letters_of(entries):
            where = [alike(t, letter) for t in flat(entries)]
            if "S(" in "".join(where):
                yield made(row, "8", {**EVEN, letter: 3}, where)


def decomposed():
    every = rare_rows.decomposed
    for begin, end, mesh in ((0, 2, "4"), (2, 5, "4"), (0, 1, "2x2")):
        for row in rows(every):
            yield from systematic(row, mesh, end)[begin:end]
    yield from drawn(150, "composed", every)
    yield from itertools.islice(short(every), 30)


def carried():
    """Of strided shards PyTorch tries others than it has; their costs are all infinite."""
    every = torch_rows_carried.carried
    calls = [
        *(call for row in rows(every) for call in systematic(row, "4", 3)),
        *(call for row in rows(every) for call in systematic(row, "2x2", 1)),
        *(call for row in rows(torch_rows_carried.batch_norms) for call in systematic(row, "4", 2)),
        *(call for row in rows(torch_rows_carried.means) for call in systematic(row, "4", 4)),
        *(call for row in rows(torch_rows_carried.outs) for call in systematic(row, "4", 3)),
        *drawn(80, "carried", every),
        *itertools.islice(short(every), 0, None, 4),
    ]
    yield from (call for call in calls if "_S(" not in str(call["in"]))


def images():
    for row in rows(torch_rows_images.images):
        yield from systematic(row, "4", 4)
        yield from systematic(row, "2x2", 2)
    yield from short(torch_rows_images.images)
    yield from drawn(150, "images", torch_rows_images.images)


def drawn(count=3000, seed="drawn", every=common_rows.every):
    draw, among = Draw(seed), rows(every)
    while count:
        row, mesh = draw.one(among), draw.one(MESHES)
        entries, axes = parsed(row[1]), len(mesh.split("x"))
        if axes == 3 and len(list(flat(entries))) > 4:
            continue
        sizes = {letter: draw.one(SIZES) for letter in EVEN}
        if draw.chance(0.3):
            sizes = {letter: 8 * draw.one([1, 1, 2, 3]) for letter in EVEN}
        # Many strided candidates on several axes take PyTorch minutes.
        strided = 0.05 if axes == 1 or (axes == 2 and len(list(flat(entries))) < 3) else 0.0
        where = placed(draw, entries, letters_of(entries), axes, strided)
        if all(is_legal(p) for p in where):
            count -= 1
            yield made(row, mesh, sizes, where, draw.chance(0.5))
