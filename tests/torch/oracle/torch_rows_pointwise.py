# SPDX-License-Identifier: BSD-3-Clause
"""Elementwise operators, in place, with out= and over lists: what row() of common_rows takes."""

NON_DECREASING = (
    "asinh atan ceil deg2rad erf exp exp2 expm1 floor rad2deg relu round sgn sigmoid sign sinh "
    "tanh trunc nan_to_num"
)
UNARY = (
    "abs acos acosh angle asin atanh cos cosh digamma erfinv frac hardsigmoid i0 lgamma log log10 "
    "log1p log2 logical_not logit mish reciprocal relu6 rsqrt selu sigmoid signbit silu sin sinc "
    "special_entr special_i1 special_ndtri sqrt square tan isnan isinf isfinite isneginf isposinf "
    "celu elu gelu hardtanh leaky_relu softplus softshrink hardshrink special_modified_bessel_k0"
)
IN_PLACE = (
    "relu_ exp_ neg_ sigmoid_ tanh_ sqrt_ abs_ zero_ floor_ erfc_ silu_ reciprocal_ log_ square_ "
    "celu_ selu_ cos_ trunc_ rsqrt_ nan_to_num_ hardtanh_ leaky_relu_"
)
BINARY = (
    "add.Tensor sub.Tensor mul.Tensor div.Tensor maximum minimum fmax fmin logaddexp logaddexp2 "
    "pow.Tensor_Tensor"
)
BINARY_PLAIN = (
    "atan2 hypot fmod.Tensor remainder.Tensor eq.Tensor ne.Tensor lt.Tensor le.Tensor gt.Tensor "
    "ge.Tensor logical_and logical_or logical_xor copysign.Tensor xlogy.Tensor heaviside nextafter "
    "clamp_min.Tensor clamp_max.Tensor special_xlog1py special_zeta ldexp.Tensor float_power."
    "Tensor_Tensor true_divide.Tensor igamma max.other min.other"
)
BINARY_SHAPES = ("ab ab", "ab b", "ab .", "b ab", "ab 1b", "abc bc", "ab1 bc")
SCALAR = (
    "add.Scalar sub.Scalar mul.Scalar div.Scalar fmod.Scalar remainder.Scalar eq.Scalar ne.Scalar "
    "lt.Scalar le.Scalar gt.Scalar ge.Scalar rsub.Scalar add_.Scalar sub_.Scalar mul_.Scalar "
    "div_.Scalar copysign.Scalar xlogy.Scalar_Other fmod_.Scalar special_xlog1py.other_scalar "
    "bitwise_and.Scalar bitwise_or.Scalar bitwise_xor.Scalar"
)


def unary(row):
    for name in NON_DECREASING.split():
        row(name, "ab")
    for name in (UNARY + " neg positive erfc special_erfcx").split():
        row(name, "ab")
    for name in IN_PLACE.split():
        row(name, "ab")
    row("threshold", "ab", threshold=0.5, value=0.0)
    row("threshold", "ab", threshold=0.5, value=2.0)
    row("threshold_", "ab", threshold=0.5, value=0.0)
    row("round.decimals", "ab", decimals=2)
    row("polygamma", "ab", n=1)
    row("clamp", "ab", min=-0.5, max=0.5)
    row("clamp", "ab", max=0.5)
    row("clamp_", "ab", min=0.0)
    row("clamp_min", "ab", min=0.0)
    row("clamp_max", "ab", max=0.5)
    row("pow.Tensor_Scalar", "ab", exponent=2)
    row("pow.Tensor_Scalar", "ab", exponent=0.5)
    row("pow_.Scalar", "ab", exponent=3)
    row("pow.Scalar", "ab", self=2.0)
    row("div.Scalar_mode", "ab", other=3.0, rounding_mode="floor")
    row("gelu", "ab", approximate="tanh")
    row("leaky_relu", "ab", negative_slope=0.2)
    row("bitwise_not", "i64.ab<64")
    row("logical_not", "b8.ab")
    row("neg", "i64.ab<64")
    row("abs", "i32.ab<64")
    row("clone", "ab")
    row("alias", "ab")
    row("detach", "ab")
    row("contiguous", "ab")
    row("view.dtype", "ab", dtype="i32")
    for dtype in ("f64", "bf16", "i32", "i64", "b8"):
        row("_to_copy", "ab", dtype=dtype)
    for dtype in ("f32", "f16", "b8", "i64"):
        row("_to_copy", "i32.ab<64", dtype=dtype)
    row("_to_copy", "bf16.ab", dtype="f32")
    row("_to_copy", "ab")
    row("fill_.Scalar", "ab", value=0.0)
    row("fill_.Scalar", "ab", value=2.5)


def scalars(row):
    for name in SCALAR.split():
        whole = "bitwise" in name
        row(name, "i64.ab<64" if whole else "ab", other=3 if whole else 2.0)
    row("add.Scalar", "ab", other=2.0, alpha=3.0)
    row("mul.Scalar", "ab", other=-2.0)
    row("mul.Scalar", "i64.ab<64", other=3)
    row("masked_fill.Scalar", "ab b8.ab", value=0.0)
    row("masked_fill.Scalar", "ab b8.b", value=-1.0)
    row("masked_fill_.Scalar", "ab b8.ab", value=0.0)
    row("masked_fill.Tensor", "ab b8.ab .")
    row("lerp.Scalar", "ab ab", weight=0.25)
    row("lerp_.Scalar", "ab ab", weight=0.25)


def binary(row):
    for name in BINARY.split():
        for shapes in BINARY_SHAPES:
            row(name, shapes)
    for name in BINARY_PLAIN.split():
        row(name, "ab ab")
        row(name, "ab b")
    for name in ("add.Tensor", "mul.Tensor", "sub.Tensor", "maximum"):
        row(name, "i64.ab<64 i64.ab<64")
    row("add.Tensor", "ab ab", alpha=2.0)
    row("sub.Tensor", "ab ab", alpha=-1.0)
    row("mul.Tensor", "abcd 1b11")
    row("mul.Tensor", "a a")
    row("add.Tensor", "a a")
    row("add.Tensor", ". .")
    row("add.Tensor", "bf16.ab f32.ab")
    row("div.Tensor_mode", "ab ab", rounding_mode="trunc")
    for name in ("bitwise_and.Tensor", "bitwise_or.Tensor", "bitwise_xor.Tensor", "gcd"):
        row(name, "i64.ab<64 i64.ab<64")
    for name in ("bitwise_left_shift.Tensor", "__rshift__.Tensor"):
        row(name, "i64.ab<8 i64.ab<8")
    row("logical_and", "b8.ab b8.ab")
    for name in ("add_.Tensor", "sub_.Tensor", "mul_.Tensor", "div_.Tensor", "copy_"):
        for shapes in ("ab ab", "ab b", "ab ."):
            row(name, shapes)
    for name in ("logical_and_", "fmod_.Tensor", "pow_.Tensor", "clamp_min_.Tensor", "eq_.Tensor"):
        row(name, "ab ab")


def ternary(row):
    row("where.self", "b8.ab ab ab")
    row("where.self", "b8.b ab .")
    row("where.self", "b8.a1 ab b")
    row("clamp.Tensor", "ab ab ab")
    row("clamp.Tensor", "ab b -")
    row("lerp.Tensor", "ab ab ab")
    row("lerp_.Tensor", "ab ab ab")
    for name in ("addcmul", "addcdiv", "addcmul_", "addcdiv_"):
        row(name, "ab ab ab")
        row(name, "ab b ab", value=0.5)


def backward(row):
    row("threshold_backward", "ab ab", threshold=0.0)
    row("threshold_backward", "abc abc", threshold=0.0)
    for name in ("gelu_backward", "silu_backward", "sigmoid_backward", "tanh_backward"):
        row(name, "ab ab")
        row(name, "abc abc")
    row("gelu_backward", "ab ab", approximate="tanh")
    row("logit_backward", "ab ab", eps=0.1)
    row("native_dropout_backward", "ab b8.ab", scale=2.0)
    row("hardtanh_backward", "ab ab", min_val=-1.0, max_val=1.0)
    row("leaky_relu_backward", "ab ab", negative_slope=0.1, self_is_result=False)


def with_out(row):
    for name in (
        "exp.out",
        "relu.out",
        "sqrt.out",
        "neg.out",
        "sigmoid.out",
        "tanh.out",
        "abs.out",
    ):
        row(name, "ab ab")
    for name in ("add.out", "sub.out", "mul.out", "div.out", "maximum.out", "logaddexp.out"):
        row(name, "ab ab ab")
        row(name, "ab b ab")
    row("pow.Tensor_Scalar_out", "ab ab", exponent=2)
    row("clamp.out", "ab ab", min=0.0)
    row("eq.Tensor_out", "ab ab b8.ab")
    row("addcmul.out", "ab ab ab ab")
    row("lerp.Scalar_out", "ab ab ab", weight=0.5)
    row("where.self_out", "b8.ab ab ab ab")


def lists(row):
    one, two, three = "[ab b]", "[ab b] [ab b]", "[ab b] [ab b] [ab b]"
    for name in ("add", "sub", "mul", "div", "maximum", "pow"):
        row(f"_foreach_{name}.List", two)
    for name in ("add_", "sub_", "mul_", "div_", "maximum_"):
        row(f"_foreach_{name}.List", two)
    row("_foreach_add_.List", two, alpha=-0.1)
    for name in ("add", "mul", "add_", "mul_", "div_", "sub", "div", "clamp_max_", "clamp_min_"):
        row(f"_foreach_{name}.Scalar", one, scalar=2.0)
    row("_foreach_pow.Scalar", one, exponent=2.0)
    for name in ("add_", "mul", "div_", "div", "mul_"):
        row(f"_foreach_{name}.ScalarList", one, scalars=[2.0, 3.0])
    for name in ("mul", "mul_", "div", "div_"):
        row(f"_foreach_{name}.Tensor", one + " .")
    for name in ("addcmul_", "addcdiv_", "addcmul", "addcdiv"):
        row(f"_foreach_{name}.Scalar", three, value=0.5)
        row(f"_foreach_{name}.ScalarList", three, scalars=[0.5, -1.0])
    row("_foreach_lerp_.Scalar", two, weight=0.1)
    row("_foreach_lerp.Scalar", two, weight=0.1)
    for name in ("sqrt", "sqrt_", "neg", "neg_", "exp", "exp_", "abs", "reciprocal_", "zero_"):
        row(f"_foreach_{name}", one)
    row("_foreach_cos", one)
    row("_foreach_copy_", two)
    for order in (2.0, 1.0, "inf", 0.0):
        row("_foreach_norm.Scalar", "[ab b a]", ord=order)


def fused(row):
    adam = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "weight_decay": 1e-2, "eps": 1e-8}
    adam.update(amsgrad=False, maximize=False)
    for name in ("_fused_adamw_", "_fused_adam_"):
        row(name, "[ab] [ab] [ab] [ab] [] [.]", **adam)
    two = "[ab b]"
    row("_fused_adamw_", f"{two} {two} {two} {two} [] [. .]", **adam)
    adam["amsgrad"] = True
    row("_fused_adam_", "[ab] [ab] [ab] [ab] [ab] [.]", **adam)


def pointwise(row):
    for part in (unary, scalars, binary, ternary, backward, with_out, lists, fused):
        part(row)
