# SPDX-License-Identifier: BSD-3-Clause
"""Calls that no row of common_rows leads to: loss parallel, and inputs that only other operators
make, such as masked and norm partials and the strided shards of views.
"""

import itertools

from calls import call

LOGITS = {
    "4": ("S1", "R", "S0", "P"),
    "2x2": ("S0S1", "RS1", "S1R", "S1S1", "RR", "S1S0", "S0R"),
}
STRIDED = {
    "4": ("_S(0,2)", "_S(0,4)", "_S(0,1)", "_S(1,2)"),
    "2x2": ("S0_S(0,4)", "R_S(0,2)", "_S(0,2)S0", "_S(0,4)R", "S1_S(0,2)", "_S(0,2)_S(1,4)"),
}
MASK = "M(32,12;0)"


def loss_parallel():
    on, nll = {"loss_parallel": True}, {"ignore_index": -100, "loss_parallel": True}
    for mesh, logits in LOGITS.items():
        whole = "R" * len(mesh.split("x"))
        for x in logits:
            one, inputs = x.count("S1") == 1, f"16x12@{x} 16x12@{x}"
            yield call("_log_softmax", mesh, f"16x12@{x}", dim=1, half_to_float=False, **on)
            yield call("_log_softmax_backward_data", mesh, inputs, dim=1, input_dtype="f32", **on)
            for target in dict.fromkeys((x.replace("S1", "R"), whole)) if one else (whole,):
                for reduction in (0, 1, 2) if one else (2,):
                    for weight in ("-", f"12@{whole}"):
                        inputs = f"16x12@{x} i64.16<12@{target} {weight}"
                        yield call("nll_loss_forward", mesh, inputs, reduction=reduction, **nll)
                        grad = f"16@{target}" if reduction == 0 else f".@{whole}"
                        inputs = f"{grad} {inputs} .@{whole}"
                        yield call("nll_loss_backward", mesh, inputs, reduction=reduction, **nll)
    for x in ("S1", "R"):
        inputs = f"4x12x3x2@{x} i64.4x3x2<12@R -"
        yield call("nll_loss2d_forward", "4", inputs, reduction=2, **nll)
        yield call("_log_softmax", "4", f"4x12x3x2@{x}", dim=1, half_to_float=False, **on)
    inputs = "4x3x2@R 4x12x3x2@S1 i64.4x3x2<12@R - .@R"
    yield call("nll_loss2d_backward", "4", inputs, reduction=0, **nll)


def masked():
    x = f"4x6x12@{MASK}"
    for name in ("relu", "clone", "alias", "detach", "sum", "exp", "neg", "zeros_like"):
        yield call(name, "4", x)
    yield call("_to_copy", "4", x, dtype="bf16")
    yield call("view", "4", x, size=[24, 12])
    yield call("transpose.int", "4", x, dim0=0, dim1=1)
    yield call("slice.Tensor", "4", x, dim=1, start=0, end=4)
    yield call("mul.Tensor", "4", f"{x} .@R")
    yield call("mul.Scalar", "4", x, other=2.0)
    for other in ("R", "S0", "S2", "P", MASK):
        yield call("add.Tensor", "4", f"{x} 4x6x12@{other}")
        yield call("cat", "4", f"[{x} 4x6x12@{other}]")
        yield call("add.Tensor", "2x2", f"4x6x12@S0{MASK} 4x6x12@{other}R")
    yield call("native_layer_norm", "4", f"{x} 12@R 12@R", normalized_shape=[12], eps=1e-5)
    yield call("native_dropout", "4", x, p=0.5, train=True)
    back = {"num_weights": 32, "padding_idx": -1, "scale_grad_by_freq": False}
    yield call("embedding_dense_backward", "4", f"{x} i64.4x6<32@R", **back)


def with_norms():
    for norm in ("N2", "N3.5"):
        order = float(norm[1:])
        for name in ("sqrt", "clone", "reciprocal", "sum", "abs"):
            yield call(name, "4", f"3@{norm}")
        yield call("linalg_vector_norm", "4", f"3@{norm}", ord=order)
        yield call("stack", "4", f"[.@{norm} .@{norm} .@{norm}]")
        yield call("stack", "2x2", f"[.@{norm}{norm} .@{norm}{norm}]")
        yield call("linalg_vector_norm", "2x2", f"3@{norm}{norm}", ord=order)
        yield call("mul.Scalar", "4", f".@{norm}", other=2.0)
        for other in ("R", "P", norm):
            for name in ("add.Tensor", "mul.Tensor", "div.Tensor", "maximum"):
                yield call(name, "4", f"3@{norm} 3@{other}")
    yield call("stack", "4", "[.@N2 .@R]")
    yield call("stack", "4", "[.@N2 .@N1]")
    yield call("stack", "4", "[.@Pmax .@Pmax]")
    yield call("cat", "4", "[3@N2 3@N2]")
    yield call("clamp", "4", ".@N2", max=1.0)
    yield call("pow.Tensor_Scalar", "4", "3@N2", exponent=2)


def strided():
    for mesh, kinds in STRIDED.items():
        plain = "R" * len(mesh.split("x"))
        for kind, mark in itertools.product(kinds, ("", "~")):
            x = f"16x32@{kind}{mark}"
            yield call("relu", mesh, x)
            yield call("t", mesh, x)
            yield call("sum.dim_IntList", mesh, x, dim=[0])
            yield call("sum", mesh, x)
            yield call("mean.dim", mesh, x, dim=[1])
            yield call("_softmax", mesh, x, dim=1, half_to_float=False)
            yield call(
                "native_layer_norm", mesh, f"{x} 32@{plain} -", normalized_shape=[32], eps=1e-5
            )
            yield call("view", mesh, x, size=[2, 8, 32])
            yield call("view", mesh, x, size=[4, 4, 32])
            yield call("view", mesh, x, size=[4, 4, 2, 16])
            yield call("view", mesh, x, size=[512])
            yield call("unsqueeze", mesh, x, dim=0)
            yield call("slice.Tensor", mesh, x, dim=1, start=0, end=16)
            yield call("add_.Tensor", mesh, f"{x} 16x32@{plain}")
            for other in (plain, "S0" + plain[1:], plain[1:] + "S1", kind + mark):
                yield call("add.Tensor", mesh, f"{x} 16x32@{other}")
                yield call("mm", mesh, f"{x} 32x16@{other}")
                yield call("addmm", mesh, f"16@{plain} {x} 32x16@{other}")
                yield call("bmm", mesh, f"16x4x8@{kind}{mark} 16x8x4@{other}")
            yield call("cat", mesh, f"[{x} 16x32@{plain}]", dim=1)


def attention():
    """No rule of its own: its decomposition is tried under many placements, which takes long."""
    for where in ("S0", "S1", "R"):
        x = f"2x4x8x4@{where}"
        yield call("_scaled_dot_product_flash_attention_for_cpu", "2", f"{x} {x} {x}")
    yield call("_scaled_dot_product_flash_attention_for_cpu", "2", f"{x} {x} {x}", is_causal=True)


def more():
    for part in (loss_parallel, masked, with_norms, strided, attention):
        yield from part()
