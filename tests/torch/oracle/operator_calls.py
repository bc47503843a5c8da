# SPDX-License-Identifier: BSD-3-Clause
"""The calls in the files of operators' decisions: chosen ones, and those made from rows,
systematically on two meshes or drawn at random.

A row is an operator with its tensors and attributes, written like the calls in calls.py. A tensor
is [DTYPE.]DIMS[<BELOW], a dim is a letter, 1, a number in braces or a product of letters in
parentheses, and "." is a scalar. The letters stand for sizes, in attributes too.
"""

import itertools
import json
import math
import pathlib
import random
import re
import sys
import zlib

import chosen_calls
import common_rows
import rare_rows
from calls import TENSOR, asked, call_of, entries, valued
from decisions import InvalidCall, answer

MESHES = "2 3 4 8 2x2 2x3 3x2 2x4 4x2 2x2x2 3x1x2".split()
SIZES = [1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 9, 12, 16, 24]
EVEN = {"a": 16, "b": 8, "c": 12, "d": 4, "e": 8, "h": 8, "k": 32, "m": 64, "n": 16, "s": 16}
EVEN.update({"t": 16, "v": 32})
PARTIALS = ["P(sum)", "P(sum)", "P(avg)", "P(max)", "P(min)", "P(product)"]
DIM = re.compile(r"\(([a-z]+)\)|\{(\w+)\}|([a-z])|1")
APART = pathlib.Path(__file__).parents[1] / "data/operators_apart.jsonl"
SIZES_FROM_VALUES = {"masked_select", "nonzero"}


class Draw(random.Random):
    """Uses random() alone, which no version of Python changes."""

    def one(self, among):
        return among[int(self.random() * len(among))]

    def chance(self, probability):
        return self.random() < probability


def rows(groups):
    return asked(lambda *row: row, groups)


def parsed(inputs):
    """Per entry None, a list, or (dtype, [text of a dim], below)."""

    def one(word):
        if word == "-":
            return None
        dtype, dims, _, _, below = TENSOR.fullmatch(word).groups()
        return dtype or "f32", [m.group() for m in DIM.finditer(dims)], below

    return entries(inputs, one)


def size_of(dim, sizes):
    product, fixed, letter = DIM.fullmatch(dim).groups()
    if fixed is not None:
        return 2 * sizes["a"] if fixed == "cat" else int(fixed)
    return math.prod(sizes[x] for x in product or letter or "")


def tensors_in(row):
    for entry in parsed(row[1]):
        yield from filter(None, entry if isinstance(entry, list) else [entry])


def letters_of(tensors):
    return sorted({x for _, dims, _ in tensors for d in dims for x in d if x.isalpha()})


def alike(tensor, letter):
    """The placement that follows a letter: a shard of the dim that the letter leads, else R."""
    for i, dim in enumerate(tensor[1]):
        if dim.strip("(").startswith(letter) and not dim.startswith("{"):
            return f"S({i})"
    return "R"


def any_placement(draw, tensor, strided=0.0):
    dtype, dims, below = tensor
    kinds = ["R"] + [f"S({i})" for i in range(len(dims))] * 2
    if below is None and dtype[0] in "fb" and dtype != "b8":
        kinds += PARTIALS[: 2 + len(PARTIALS) // 2] if draw.chance(0.7) else PARTIALS
    elif below is None or draw.chance(0.02):
        kinds += ["P(sum)", "P(max)", "P(min)"] if dtype != "b8" else []
    if dims and draw.chance(strided):
        return f"_S({int(draw.random() * len(dims))}, {draw.one([2, 3, 4])})"
    return draw.one(kinds)


def placed(draw, tensors, axes, strided):
    """Placements per tensor, axis by axis: all tensors follow a letter, but for one or two."""
    letters, out = letters_of(tensors), ["" for _ in tensors]
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
    name, inputs, attributes = row
    where = iter(placements)

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
    attr = valued(attributes, sizes)
    return {**call, "attr": attr} if attr else call


def systematic(row, mesh, count):
    """Calls of a row on a mesh: every letter followed, every tensor moved away from there."""
    axes, tensors = len(mesh.split("x")), list(tensors_in(row))
    draw = Draw(f"{row[0]} {row[1]} {sorted(row[2])} {mesh}")
    found = []
    if axes == 1:
        found = [[alike(t, letter) for t in tensors] for letter in letters_of(tensors)]
        for at, (dtype, _, below) in enumerate(tensors):
            kinds = PARTIALS[1:] if len(tensors) == 1 else PARTIALS[1:2]
            if dtype[0] in "fb" and dtype != "b8" and below is None:
                found += [["R"] * at + [k] + ["R"] * (len(tensors) - at - 1) for k in kinds]
    unique, tries = [], 0
    while len(unique) < count and tries < 60:
        tries += 1
        new = found.pop(0) if found else placed(draw, tensors, axes, 0.04)
        if new not in unique and all(is_legal(p) for p in new):
            unique.append(new)
    return [made(row, mesh, EVEN, new, draw.chance(0.5)) for new in unique]


def short(groups):
    """Every letter followed by all tensors, on more ranks than it has elements."""
    for row in rows(groups):
        tensors = list(tensors_in(row))
        for letter in letters_of(tensors):
            where = [alike(t, letter) for t in tensors]
            if "S(" in "".join(where):
                yield made(row, "8", {**EVEN, letter: 3}, where)


def drawn(count, seed, groups):
    draw, among = Draw(seed), rows(groups)
    while count:
        row, mesh = draw.one(among), draw.one(MESHES)
        tensors, axes = list(tensors_in(row)), len(mesh.split("x"))
        if axes == 3 and len(tensors) > 4:
            continue
        sizes = {letter: draw.one(SIZES) for letter in EVEN}
        if draw.chance(0.3):
            sizes = {letter: 8 * draw.one([1, 1, 2, 3]) for letter in EVEN}
        # Many strided candidates on several axes take PyTorch minutes.
        strided = 0.05 if axes == 1 or (axes == 2 and len(tensors) < 3) else 0.0
        where = placed(draw, tensors, axes, strided)
        if all(is_legal(p) for p in where):
            count -= 1
            yield made(row, mesh, sizes, where, draw.chance(0.5))


def wide():
    for row in rows(common_rows.ALL):
        tensors = len(list(tensors_in(row)))
        yield from systematic(row, "4", min(9, 3 + 2 * tensors))
        yield from systematic(row, "2x2", min(4, 1 + tensors))


def answered(calls, in_inference_mode=False):
    for call in calls:
        try:
            expect = answer(call, in_inference_mode)
        except InvalidCall as error:
            print(f"left out: {error}", file=sys.stderr)
        else:
            if expect:
                yield {**call, "expect": expect}


def calls_of_operators():
    """All calls that show a rule, and a few per operator of all others."""
    yield from asked(call_of, chosen_calls.RULES)
    special = asked(call_of, chosen_calls.SPECIAL)
    by_name = {}
    for call in itertools.chain(special, wide()):
        by_name.setdefault(call["call"], []).append(call)
    for name, calls in sorted(by_name.items()):
        first, step = zlib.crc32(name.encode()), len(calls) // 4 + 1
        yield from (calls[(first + i * step) % len(calls)] for i in range(min(4, len(calls))))
    yield from special[::3]
    yield from drawn(3000, "drawn", common_rows.ALL)
    yield from short(common_rows.ALL)
    for row in rows(rare_rows.IMAGES):
        yield from systematic(row, "4", 4)
        yield from systematic(row, "2x2", 2)
    yield from short(rare_rows.IMAGES)
    yield from drawn(150, "images", rare_rows.IMAGES)


def operators():
    """Without the calls that reshard decides otherwise, with cause."""
    apart = [json.loads(line) for line in APART.read_text(encoding="ascii").splitlines()]
    apart = [{k: v for k, v in each.items() if k not in ("expect", "why")} for each in apart]
    return answered(call for call in calls_of_operators()
                    if call["call"] not in SIZES_FROM_VALUES and call not in apart)


def calls_of_decomposed():
    groups = rare_rows.DECOMPOSED
    for begin, end, mesh in ((0, 2, "4"), (2, 5, "4"), (0, 1, "2x2")):
        for row in rows(groups):
            yield from systematic(row, mesh, end)[begin:end]
    yield from drawn(150, "composed", groups)
    yield from itertools.islice(short(groups), 30)


def operators_decomposed():
    return answered(calls_of_decomposed())


def calls_of_carried():
    carried = rare_rows.CARRIED
    for groups, mesh, count in (
        (carried, "4", 3), (carried, "2x2", 1), (rare_rows.BATCH_NORMS, "4", 2),
        (rare_rows.MEANS, "4", 4), (rare_rows.OUTS, "4", 3),
    ):
        for row in rows(groups):
            yield from systematic(row, mesh, count)
    yield from drawn(80, "carried", carried)
    yield from itertools.islice(short(carried), 0, None, 4)


def operators_carried():
    """Without strided shards: PyTorch tries other ones for them, all at infinite cost."""
    return answered((call for call in calls_of_carried() if "_S(" not in str(call["in"])), True)
