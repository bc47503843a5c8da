# SPDX-License-Identifier: BSD-3-Clause
"""Calls of operators that PyTorch takes apart before dispatch sees them."""

from calls import call

PAIRS = {
    "16x8 8x12": "R,R R,S0 R,S1 S0,R S1,S0 P,R S0,S1 S1,R",
    "4x16x8 8x12": "S0,R S1,R S2,S0 R,S1 P,R S1,S1 S0,S1 R,R",
    "4x16x8 4x8x12": "S0,S0 S1,R S2,S1 R,S2 S0,R S1,S1",
    "4x8x16x8 4x8x8x16": "S0,S0 S1,S1 S2,R R,S3 S3,S2 S1,R S2,S2 R,R",
    "8x8x16 16x12": "S1,R S0,R S2,S0",
    "16x8 8": "S0,R S1,S0 R,R P,R",
    "8 8": "S0,S0 R,R S0,R",
    "8x16x8 1x8x12": "S0,R S1,R R,S2",
}
LINEARS = {
    "16x8 12x8 12": "R,S0,S0 S1,S1,R S0,R,R R,R,R P,R,R S0,S0,S0 R,S1,R",
    "16x8 12x8": "R,S0 S1,S1 S0,R S0,S0 P,R R,S1",
    "4x16x8 12x8 12": "R,S0,S0 S2,S1,R S1,R,R S1,S0,S0 S0,R,R S0,S0,S0 P,R,R",
    "4x16x8 12x8": "R,S0 S2,S1 S1,R S1,S0 S0,S0 P,R",
    "1x16x8 12x8 12": "S1,S0,S0 S1,R,R R,S0,S0",
    "4x6x16x8 12x8": "S1,R S2,S0 S0,R R,S0",
}
EINSUMS = {
    "bhqd,bhkd->bhqk": ("2x8x4x16 2x8x4x16", "S1,S1 S0,S0 S3,S3 S1,R R,R"),
    "bsd,df->bsf": ("4x8x16 16x12", "S0,R S2,S0 R,S1 S1,R S1,S1 P,R"),
    "ij,jk->ik": ("16x8 8x12", "S0,R S1,S0 R,S1 R,R"),
    "ij,kj->ik": ("16x8 12x8", "S0,R S1,S1 R,S0"),
    "bij,bjk->bik": ("8x16x8 8x8x12", "S0,S0 S1,R R,S2"),
    "ij->ji": ("16x8", "S0 S1 P R"),
    "ij->i": ("16x8", "S0 S1 P"),
    "i,j->ij": ("16 8", "S0,R R,S0 R,R"),
    "bhsd,hde->bse": ("2x8x4x16 8x16x32", "S1,S0 R,S2 S0,R"),
}
ON_TWO = {
    "matmul": [
        ("16x8", "S0R S0S1 RS1 S0P"),
        ("8x12", "RS1 RS0 S0R RR"),
        ("4x8x16x8", "S0S1 S0S2 S1S0"),
        ("4x8x8x16", "S0S1 S0R S1S0"),
    ],
    "linear": [("4x16x8", "S0R S0S1 RS2 S0S2"), ("12x8", "RS0 RS1 RR S0S1")],
}


def at(shapes, placements):
    return " ".join(f"{s}@{p}" for s, p in zip(shapes.split(), placements.split(",")))


def products():
    for shapes, where in PAIRS.items():
        for placements in where.split():
            yield call("matmul", "4", at(shapes, placements))
    for shapes, where in LINEARS.items():
        for placements in where.split():
            yield call("linear", "4", at(shapes, placements))
    for equation, (shapes, where) in EINSUMS.items():
        for placements in where.split():
            yield call("einsum", "4", f"[{at(shapes, placements)}]", equation=equation)
    for name, sides in ON_TWO.items():
        for (left, left_where), (right, right_where) in zip(sides[::2], sides[1::2]):
            for a in left_where.split():
                for b in right_where.split():
                    yield call(name, "2x2", f"{left}@{a} {right}@{b}")
    yield call("einsum", "2x2", "[2x8x4x16@S0S1 2x8x4x16@S0S1]", equation="bhqd,bhkd->bhqk")


def others():
    for where in ("R", "S0", "S1", "P"):
        x, last = f"16x8@{where}", {"normalized_shape": [8]}
        yield call("softmax.int", "4", x, dim=-1)
        yield call("layer_norm", "4", f"{x} 8@R 8@R", **last)
        yield call("rms_norm", "4", f"{x} 8@R", **last, eps=1e-5)
        yield call("chunk", "4", x, chunks=2, dim=0)
        yield call("chunk", "4", x, chunks=2, dim=1)
        yield call("reshape", "4", x, shape=[4, 4, 8])
        yield call("reshape", "4", x, shape=[128])
        yield call("flatten.using_ints", "4", x)
        yield call("narrow", "4", x, dim=0, start=0, length=4)
        yield call("dropout", "4", x, p=0.5, train=True)
        yield call("norm.ScalarOpt_dim", "4", x, p=2, dim=[1])
        yield call("tensor_split.sections", "4", x, sections=2)
        yield call("tile", "4", x, dims=[2, 1])
        yield call("movedim.int", "4", x, source=0, destination=1)
        yield call("var", "4", x)
        yield call("cross_entropy_loss", "4", f"{x} i64.16<8@{'S0' if where == 'S0' else 'R'}")
    for where in ("S0", "S1", "S2", "R"):
        shape = f"4x8x16x8@{where}"
        yield call("unflatten.int", "4", shape, dim=1, sizes=[4, 2])
        yield call("scaled_dot_product_attention", "4", f"{shape} {shape} {shape}")
        yield call("group_norm", "4", f"4x8x16x8@{where} 8@R 8@R", num_groups=2)
        yield call("mse_loss", "4", f"{shape} {shape}", reduction=2)


def composite():
    yield from products()
    yield from others()
