# SPDX-License-Identifier: BSD-3-Clause
"""Pointwise operators, and with what operator_values.py asks about them."""

import torch
from torch_operator_tensors import BF16, F16, F32, F64, I32, I64, I8, INF, U8, b, case, f, i, scalar

ANY = (-2.0, 2.0)
POSITIVE = (0.125, 3.0)
UNIT = (-0.875, 0.875)
SHARE = (0.125, 0.875)
UNARY = {
    ANY: "abs asinh atan ceil cos cosh deg2rad erf erfc exp exp2 expm1 floor frac i0 isfinite "
    "isinf isnan isneginf isposinf logical_not mish neg positive rad2deg relu round sgn "
    "sigmoid sign signbit silu sin sinc sinh square tan tanh trunc hardsigmoid hardswish selu "
    "relu6 log_sigmoid celu elu gelu hardshrink hardtanh leaky_relu softplus softshrink "
    "nan_to_num special_bessel_j0 special_bessel_j1 special_erfcx special_i0e special_i1 "
    "special_i1e special_log_ndtr special_spherical_bessel_j0 angle conj_physical",
    POSITIVE: "digamma lgamma log log10 log1p log2 reciprocal rsqrt sqrt special_bessel_y0 "
    "special_bessel_y1 special_entr",
    UNIT: "acos asin atanh erfinv",
    SHARE: "logit special_ndtri",
}


def unary():
    for (low, high), names in UNARY.items():
        for name in names.split():
            yield case(name, f(6, low=low, high=high))
    yield case("acosh", f(4, low=1, high=3))
    for name in ("exp", "gelu", "silu", "tanh", "sigmoid", "rsqrt"):
        yield case(name, f(4, low=0.125, high=2, dtype=BF16))
        yield case(name, f(low=0.125, high=2, dtype=F64))
    for name in ("exp", "sqrt", "sigmoid", "reciprocal", "tanh"):
        yield case(name, i(4, low=1))
    for name in ("abs", "neg", "sign", "square", "relu", "floor", "round", "logical_not"):
        yield case(name, i(2, 2, low=-3, below=4))
    special = scalar([float("nan"), INF, -INF, -0.0, 0.0])
    for name in ("relu", "exp", "sign", "sigmoid", "isnan", "isinf", "hardtanh", "round", "abs"):
        yield case(name, special)
    for dtype in (F32, BF16, F16, F64):
        yield case("nan_to_num", special.to(dtype))
    yield case("nan_to_num", special, nan=1.0, posinf=2.0, neginf=-3.0)
    yield case("relu", f(0, 3))
    yield case("relu_", f(2, 3))
    yield case("exp.out", f(3), f(3))
    yield case("gelu", f(6), approximate="tanh")
    yield case("logit", f(6), eps=0.25)
    yield case("round.decimals", f(6), decimals=1)
    yield case("elu", f(6), alpha=2.0, scale=1.5, input_scale=0.5)
    yield case("celu", f(6), alpha=0.5)
    yield case("leaky_relu", f(6), negative_slope=0.25)
    yield case("hardtanh", f(6), min_val=-0.5, max_val=1.0)
    yield case("hardshrink", f(6), lambd=1)
    yield case("softplus", f(6), beta=2, threshold=1)
    yield case("threshold", f(6), threshold=0.5, value=-3)
    yield case("threshold", i(6), threshold=2, value=-3)
    yield case("bitwise_not", i(4, low=-3))
    yield case("bitwise_not", b(4))
    yield case("bitwise_not", i(4, dtype=U8))
    yield case("mvlgamma", f(4, low=2, high=4), p=2)


def binary():
    both = (
        "add.Tensor sub.Tensor mul.Tensor div.Tensor remainder.Tensor fmod.Tensor maximum minimum "
    )
    both += "fmax fmin eq.Tensor ne.Tensor lt.Tensor le.Tensor gt.Tensor ge.Tensor logical_and "
    both += "logical_or logical_xor floor_divide heaviside xlogy.Tensor atan2 copysign.Tensor"
    for name in both.split():
        yield case(name, f(2, 3), f(3, low=0.5, high=3))
        yield case(name, i(2, 1, low=-4, below=5), i(3, low=1, below=4))
    for name in ("hypot", "logaddexp", "logaddexp2", "special_xlog1py", "ldexp.Tensor"):
        yield case(name, f(2, 3), f(2, 1, low=0, high=2))
    yield case("pow.Tensor_Tensor", f(2, 3, low=0.25), i(3))
    yield case("pow.Tensor_Scalar", f(5), exponent=2)
    yield case("pow.Tensor_Scalar", f(5, low=0.5), exponent=-0.5)
    yield case("pow.Tensor_Scalar", i(5, low=-3), exponent=3)
    yield case("pow.Scalar", f(5), self=2.0)
    yield case("float_power.Tensor_Scalar", f(4, low=0), exponent=1.5)
    yield case("add.Tensor", f(2, 3), f(2, 3), alpha=0.5)
    yield case("add.Tensor", i(3), i(3), alpha=3)
    yield case("add.Tensor", f(2, 3), other=0.5)
    yield case("add.Scalar", i(3), other=2)
    yield case("add.Scalar", i(3), other=1.5)
    yield case("add.Tensor", f(3, dtype=BF16), f(3))
    yield case("add.Tensor", f(3, dtype=BF16), f())
    yield case("add.Tensor", f(3, dtype=BF16), f(3, dtype=F16))
    yield case("add.Tensor", f(3), f(3, dtype=F64))
    yield case("add.Tensor", i(3), f())
    yield case("add.Tensor", b(3), b(3))
    yield case("add.Tensor", i(3, dtype=U8), i(3, dtype=I8))
    yield case("add.Tensor", i(3, low=200, below=250, dtype=U8), i(3, low=100, below=120, dtype=U8))
    yield case("add.Tensor", i(3, dtype=I32), i(dtype=I64))
    yield case("add_.Tensor", f(3), i(3))
    yield case("add.out", f(3), f(3), f(3, dtype=F64))
    yield case("sub.Scalar", f(3), other=0.25, alpha=2)
    yield case("rsub.Scalar", f(3), other=1.0)
    yield case("rsub.Tensor", f(3), f(3))
    yield case("mul.Scalar", f(3, dtype=BF16), other=0.375)
    yield case("mul.Tensor", f(3, dtype=F16), other=3)
    yield case("mul_.Scalar", f(3), other=2.5)
    yield case("mul.Tensor", f(0, 3), f(1, 3))
    yield case("mul.Tensor", f(2, 1, 3), f(4, 1))
    for mode in ("floor", "trunc"):
        yield case("div.Tensor_mode", f(6), f(6, low=0.25), rounding_mode=mode)
        yield case(
            "div.Tensor_mode", i(6, low=-7, below=8), i(6, low=1, below=4), rounding_mode=mode
        )
        yield case("div.Scalar_mode", f(6), other=-0.75, rounding_mode=mode)
    yield case("div_.Tensor", f(3), f(3, low=1))
    yield case("div.Scalar", i(3), other=2)
    yield case("remainder.Scalar", f(6), other=-0.75)
    yield case("remainder.Tensor", i(6, low=-7, below=8), i(6, low=-4, below=0))
    yield case("fmod.Scalar", i(6, low=-7, below=8), other=3)
    yield case("eq.Scalar", f(3), other=0.5)
    yield case("gt.Scalar", i(3), other=1.5)
    yield case("le_.Scalar", f(3), other=0.5)
    yield case("maximum", scalar([float("nan"), 1, 2]), scalar([1, float("nan"), 3]))
    yield case("fmax", scalar([float("nan"), 1, 2]), scalar([1, float("nan"), 3]))
    yield case("max.other", f(3), f(3))
    for name in ("bitwise_and.Tensor", "bitwise_or.Tensor", "bitwise_xor.Tensor", "gcd", "lcm"):
        yield case(name, i(2, 3, below=9), i(3, below=9))
    yield case("bitwise_xor.Tensor", b(4), b(4))
    yield case("__and__.Scalar", i(4), other=3)
    yield case("__ior__.Tensor", i(4), i(4))
    yield case("bitwise_left_shift.Tensor", i(4), i(4))
    yield case("__rshift__.Scalar", i(4, below=99), other=2)


def ternary():
    yield case("where.self", b(2, 3), f(2, 3), f(3))
    yield case("where.self", b(2, 1), f(3, dtype=BF16), f())
    yield case("where.ScalarSelf", b(3), f(3), self=1.5)
    yield case("where.ScalarOther", b(3), i(3), other=2)
    yield case("masked_fill.Scalar", f(2, 3), b(3), value="-inf")
    yield case("masked_fill.Tensor", f(2, 3), b(2, 1), f())
    yield case("masked_fill_.Scalar", i(3), b(3), value=7)
    yield case("clamp", f(6), min=-0.5, max=1)
    yield case("clamp", f(6), min=0.25)
    yield case("clamp", i(6, low=-4), max=2)
    yield case("clamp", i(6, low=-4), min=-1.5, max=2)
    yield case("clamp.Tensor", f(2, 3), f(3, high=0), f(3, low=0))
    yield case("clamp.Tensor", f(2, 3), None, f(3))
    yield case("clamp.Tensor", f(2, 3), f(3))
    yield case("clamp_min", f(6), min=0.5)
    yield case("clamp_max.Tensor", f(6), f(6))
    yield case("clamp_", f(6), min=-1, max=1)
    yield case("lerp.Scalar", f(6), f(6), weight=0.25)
    yield case("lerp.Tensor", f(2, 3), f(2, 3), f(3))
    yield case("addcmul", f(2, 3), f(2, 1), f(3), value=0.5)
    yield case("addcmul", i(3), i(3), i(3), value=2)
    yield case("addcdiv", f(2, 3), f(2, 3), f(3, low=1), value=-1.5)
    yield case("addcdiv_", f(3), f(3), f(3, low=1))


def backward():
    for name in "sigmoid tanh silu mish hardsigmoid hardswish".split():
        yield case(f"{name}_backward", f(6), f(6, low=-4, high=4))
    yield case("gelu_backward", f(6), f(6))
    yield case("gelu_backward", f(6, dtype=BF16), f(6, dtype=BF16), approximate="tanh")
    yield case("threshold_backward", f(6), f(6), threshold=0)
    yield case("leaky_relu_backward", f(6), f(6), negative_slope=0.25, self_is_result=False)
    for is_result in (False, True):
        yield case(
            "elu_backward", f(6), f(6), alpha=0.5, scale=2, input_scale=1.5, is_result=is_result
        )
    yield case("hardtanh_backward", f(6), f(6), min_val=-1, max_val=1)
    yield case("hardshrink_backward", f(6), f(6), lambd=0.5)
    yield case("softshrink_backward", f(6), f(6), lambd=0.5)
    yield case("softplus_backward", f(6), f(6), beta=2, threshold=2)
    yield case("logit_backward", f(6), f(6, low=0, high=1))
    yield case("logit_backward", f(6), f(6, low=0, high=1), eps=0.25)
    x = f(6)
    yield case("log_sigmoid_backward", f(6), x, torch.exp(-x.abs()))
    yield case("native_dropout_backward", f(6), b(6), scale=2.0)
