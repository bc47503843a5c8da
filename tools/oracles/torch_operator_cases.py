# SPDX-License-Identifier: BSD-3-Clause
"""Which operators torch_operator_values.py asks about, and with what: small tensors of values that
every dtype holds exactly."""

import random

import torch

DRAW = random.Random(13)
INF = float("inf")
F32, F64, BF16, F16 = torch.float32, torch.float64, torch.bfloat16, torch.float16
I64, I32, U8, I8, BOOL = torch.int64, torch.int32, torch.uint8, torch.int8, torch.bool


def count_of(shape):
    count = 1
    for size in shape:
        count *= size
    return count


def f(*shape, dtype=F32, low=-2.0, high=2.0):
    """Eighths from low to high."""
    values = [DRAW.randint(int(low * 8), int(high * 8)) / 8 for _ in range(count_of(shape))]
    return torch.tensor(values, dtype=dtype).reshape(shape)


def apart(*shape, dtype=F32):
    """Eighths, no two the same, so that a place is the only one."""
    values = [(i - count_of(shape) // 2) / 8 for i in range(count_of(shape))]
    DRAW.shuffle(values)
    return torch.tensor(values, dtype=dtype).reshape(shape)


def i(*shape, low=0, below=5, dtype=I64):
    values = [DRAW.randrange(low, below) for _ in range(count_of(shape))]
    return torch.tensor(values, dtype=dtype).reshape(shape)


def b(*shape):
    return i(*shape, below=2).bool()


def scalar(value, dtype=F32):
    return torch.tensor(value, dtype=dtype)


def case(name, *inputs, by=None, **attributes):
    return name, list(inputs), attributes, by


ANY = (-2.0, 2.0)
POSITIVE = (0.125, 3.0)
UNIT = (-0.875, 0.875)
SHARE = (0.125, 0.875)
UNARY = {
    ANY: "abs asinh atan ceil cos cosh deg2rad erf erfc exp exp2 expm1 floor frac i0 isfinite isinf "
    "isnan isneginf isposinf logical_not mish neg positive rad2deg relu round sgn sigmoid sign "
    "signbit silu sin sinc sinh square tan tanh trunc hardsigmoid hardswish selu relu6 log_sigmoid "
    "celu elu gelu hardshrink hardtanh leaky_relu softplus softshrink nan_to_num special_bessel_j0 "
    "special_bessel_j1 special_erfcx special_i0e special_i1 special_i1e special_log_ndtr "
    "special_spherical_bessel_j0 angle conj_physical",
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
    both = "add.Tensor sub.Tensor mul.Tensor div.Tensor remainder.Tensor fmod.Tensor maximum minimum "
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
        yield case("div.Tensor_mode", i(6, low=-7, below=8), i(6, low=1, below=4), rounding_mode=mode)
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
        yield case("elu_backward", f(6), f(6), alpha=0.5, scale=2, input_scale=1.5,
                   is_result=is_result)
    yield case("hardtanh_backward", f(6), f(6), min_val=-1, max_val=1)
    yield case("hardshrink_backward", f(6), f(6), lambd=0.5)
    yield case("softshrink_backward", f(6), f(6), lambd=0.5)
    yield case("softplus_backward", f(6), f(6), beta=2, threshold=2)
    yield case("logit_backward", f(6), f(6, low=0, high=1))
    yield case("logit_backward", f(6), f(6, low=0, high=1), eps=0.25)
    x = f(6)
    yield case("log_sigmoid_backward", f(6), x, torch.exp(-x.abs()))
    yield case("native_dropout_backward", f(6), b(6), scale=2.0)


def matrices():
    yield case("mm", f(3, 4), f(4, 2))
    yield case("mm", f(3, 0), f(0, 2))
    yield case("mm", i(2, 3), i(3, 2))
    yield case("mm", f(3, 4, dtype=BF16), f(4, 2, dtype=BF16))
    yield case("mm", f(3, 4, dtype=F64), f(4, 2, dtype=F64))
    yield case("mm.out", f(3, 4), f(4, 2), f(3, 2))
    yield case("addmm", f(2), f(3, 4), f(4, 2), alpha=0.5, beta=2)
    yield case("addmm", f(3, 1), f(3, 4), f(4, 2))
    yield case("addmm_", f(3, 2), f(3, 4), f(4, 2), beta=0)
    yield case("bmm", f(2, 3, 4), f(2, 4, 2))
    yield case("baddbmm", f(3, 2), f(2, 3, 4), f(2, 4, 2), alpha=2)
    yield case("dot", f(5), f(5))
    yield case("vdot", f(5), f(5))
    yield case("mv", f(3, 4), f(4))
    yield case("addmv", f(3), f(3, 4), f(4), alpha=0.5, beta=0.25)
    for a, c in [((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((2, 2, 3), (3, 2)),
                 ((2, 1, 2, 3), (2, 3, 2)), ((3,), (2, 3, 2))]:
        yield case("matmul", f(*a), f(*c))
    yield case("linear", f(2, 2, 3), f(4, 3), f(4))
    yield case("linear", f(3), f(4, 3))
    yield case("linear", f(2, 3, dtype=BF16), f(4, 3, dtype=BF16), f(4, dtype=BF16))
    yield case("outer", f(3), f(2))
    for equation, *shapes in [("ij,jk->ik", (2, 3), (3, 2)), ("bhqd,bhkd->bhqk", (1, 2, 3, 2), (1, 2, 2, 2)),
                              ("...ij,...jk", (2, 2, 3), (3, 2)), ("ii->i", (3, 3)), ("ij->", (2, 3)),
                              ("i,j,k->kji", (2,), (2,), (3,)), ("bsd,df->bsf", (2, 2, 3), (3, 2))]:
        yield case("einsum", [f(*shape) for shape in shapes], equation=equation)


def reductions():
    for name in ("sum", "nansum", "prod"):
        yield case(name, f(2, 3))
        yield case(name, i(2, 3))
        yield case(name, f(0, 3))
    for dim in ([0], [-1], [0, 2], [], None):
        yield case("sum.dim_IntList", f(2, 3, 2), dim=dim, keepdim=True)
        yield case("mean.dim", f(2, 3, 2), dim=dim)
    yield case("sum.dim_IntList", b(2, 3), dim=[1])
    yield case("sum.dim_IntList", f(2, 3), dim=[1], dtype="f64")
    yield case("sum.dim_IntList", f(4, 3, dtype=BF16), dim=[0])
    yield case("sum.dim_IntList", f(), dim=[0])
    yield case("sum.IntList_out", f(2, 3), f(3), dim=[0])
    yield case("nansum", scalar([1.0, float("nan"), 2.0]))
    yield case("prod.dim_int", f(2, 3), dim=1)
    yield case("prod.dim_int", f(2, 0), dim=1, keepdim=True)
    yield case("mean", f(2, 3))
    yield case("mean", i(2, 3), dtype="f32")
    for name in ("amax", "amin"):
        yield case(name, f(2, 3, 2), dim=[0, -1])
        yield case(name, f(2, 3), dim=[])
        yield case(name, i(2, 3), dim=[1], keepdim=True)
        yield case(name, scalar([1.0, float("nan")]), dim=[0])
    for name in ("max", "min"):
        yield case(name, f(2, 3))
        yield case(f"{name}.dim", apart(3, 4), dim=1)
        yield case(f"{name}.dim", apart(3, 4, dtype=BF16), dim=0, keepdim=True)
        yield case(f"{name}.dim", i(3, 4, below=3), dim=-1)
        yield case(f"{name}.dim", b(3, 2), dim=1)
        yield case(f"{name}.dim", scalar([1.0, float("nan"), 3]), dim=0)
        yield case(f"arg{name}", apart(3, 4))
        yield case(f"arg{name}", i(3, 4, below=3), dim=0, keepdim=True)
        yield case(f"arg{name}", f(), dim=0)
    yield case("max.dim_max", apart(3, 4), f(3), i(3), dim=1)
    yield case("aminmax", f(2, 3), dim=1)
    yield case("median", apart(2, 3))
    yield case("median", f())
    yield case("median.dim", apart(3, 4), dim=1)
    yield case("median.dim", scalar([[1.0, float("nan"), 3]]), dim=1)
    yield case("nanmedian", scalar([1.0, float("nan"), 3, 2]))
    yield case("nanmedian.dim", scalar([[1.0, float("nan"), 3, 2]]), dim=1)
    yield case("kthvalue", apart(3, 4), k=2)
    yield case("kthvalue", apart(3, 4), k=3, dim=0, keepdim=True)
    yield case("mode", i(3, 6, below=3), dim=1)
    yield case("mode", i(6, 2, below=3), dim=0, keepdim=True)
    for name in ("var", "std"):
        yield case(f"{name}.correction", f(3, 4), dim=[1])
        yield case(f"{name}.correction", f(3, 4), dim=None, correction=0, keepdim=True)
        yield case(name, f(3, 4), unbiased=False)
    yield case("var_mean.correction", f(3, 4), dim=[0], correction=2)
    yield case("std_mean.correction", f(3, 4), dim=[0, 1])
    yield case("var.correction", f(1), dim=[0])
    for name in ("any", "all"):
        yield case(name, b(2, 3))
        yield case(name, f(0))
        yield case(f"{name}.dim", f(2, 3), dim=1)
        yield case(f"{name}.dims", b(2, 3, 2), dim=[0, 2], keepdim=True)
        yield case(f"{name}.dim", i(2, 3, below=2, dtype=U8), dim=0)
    yield case("count_nonzero.dim_IntList", i(2, 3, below=2), dim=[1])
    yield case("logsumexp", f(2, 3), dim=[1])
    yield case("logsumexp", scalar([[-INF, -INF], [INF, 1.0]]), dim=[1], keepdim=True)
    for order in (2, 1, 0, 3, 0.5, -1, INF, -INF):
        yield case("linalg_vector_norm", f(2, 3, low=0.125), ord=order if abs(order) < 9 else str(order),
                   dim=[1])
    yield case("linalg_vector_norm", f(2, 3))
    yield case("linalg_vector_norm", f(2, 3, dtype=BF16), dtype="f32", keepdim=True)
    yield case("norm.Scalar", f(2, 3), p=2)
    yield case("norm.ScalarOpt_dim", f(2, 3), p=None, dim=[0])
    yield case("norm.ScalarOpt_dim", f(2, 3), p=1, dim=[0], keepdim=True)


def scans():
    for name in ("cumsum", "cumprod"):
        yield case(name, f(2, 3), dim=1)
        yield case(name, i(3, 2), dim=0)
        yield case(name, f(), dim=0)
        yield case(name, f(3, dtype=BF16), dim=0, dtype="f32")
    yield case("cumsum_", f(2, 3), dim=-1)
    yield case("logcumsumexp", f(3, 2), dim=0)
    for name in ("cummax", "cummin"):
        yield case(name, f(3, 4, high=-1), dim=1)
        yield case(name, scalar([1.0, float("nan"), 3]), dim=0)
    for descending in (False, True):
        yield case("sort", apart(3, 4), dim=1, descending=descending)
        yield case("sort.stable", i(3, 4, below=3), dim=0, descending=descending, stable=True)
        yield case("argsort", apart(3, 4), descending=descending)
    yield case("sort", scalar([1.0, float("nan"), 3, -INF]))
    yield case("sort", f())
    yield case("topk", apart(3, 4), k=2)
    yield case("topk", apart(3, 4), k=2, dim=0, largest=False)
    yield case("topk.values", apart(3, 4), f(3, 1), i(3, 1), k=1)


def softmaxes():
    for name in ("_softmax", "_log_softmax"):
        yield case(name, f(2, 3), dim=-1, half_to_float=False)
        yield case(name, f(2, 3, 2), dim=1, half_to_float=False)
        yield case(name, f(2, 3, dtype=BF16), dim=0, half_to_float=False)
    yield case("softmax.int", f(2, 3, dtype=F16), dim=1, dtype="f32")
    yield case("log_softmax.int", f(3), dim=0)
    yield case("softmax.int", f(2, 0), dim=1)
    yield case("_safe_softmax", scalar([[-INF, -INF], [0.0, -INF]]), dim=1)
    yield case("_softmax_backward_data", f(2, 3), torch.softmax(f(2, 3), 1), dim=1, input_dtype="f32")
    yield case("_log_softmax_backward_data", f(3, 2), torch.log_softmax(f(3, 2), 0), dim=0,
               input_dtype="f32")


def norms():
    for shape in ([3], [2, 3]):
        w, bias = f(*shape), f(*shape)
        x = f(2, 2, 3)
        yield case("native_layer_norm", x, w, bias, normalized_shape=shape, eps=1e-5)
        out, mean, rstd = torch.native_layer_norm(x, shape, w, bias, 1e-5)
        for mask in ([True, True, True], [True, False, True]):
            yield case("native_layer_norm_backward", f(2, 2, 3), x, mean, rstd, w, bias,
                       normalized_shape=shape, output_mask=mask)
        yield case("native_layer_norm", x, None, None, normalized_shape=shape, eps=1e-3)
        yield case("native_layer_norm_backward", f(2, 2, 3), x, mean, rstd, None, None,
                   normalized_shape=shape, output_mask=[True, False, False])
        yield case("_fused_rms_norm", x, w, normalized_shape=shape, eps=1e-5)
        yield case("rms_norm", x, w, normalized_shape=shape)
    yield case("layer_norm", f(2, 4), f(4), normalized_shape=[4])
    yield case("native_layer_norm", f(2, 4, dtype=BF16), f(4, dtype=BF16), f(4, dtype=BF16),
               normalized_shape=[4], eps=1e-5)
    yield case("native_layer_norm", f(0, 4), f(4), f(4), normalized_shape=[4], eps=1e-5)
    x, w = f(2, 3), f(3)
    _, rstd = torch.ops.aten._fused_rms_norm(x, [3], w, 1e-5)


    def by_autograd(grad, x, _, w):
        x.requires_grad_(), w.requires_grad_()
        return torch.autograd.grad(torch.rms_norm(x, [3], w, 1e-5), [x, w], grad)

    yield case("_fused_rms_norm_backward", f(2, 3), x, rstd, w, normalized_shape=[3],
               output_mask=[True, True], by=by_autograd)
    x, w, bias = f(2, 4, 3), f(4), f(4)
    sizes = {"N": 2, "C": 4, "HxW": 3, "group": 2}
    yield case("native_group_norm", x, w, bias, **sizes, eps=1e-5)
    out, mean, rstd = torch.native_group_norm(x, w, bias, 2, 4, 3, 2, 1e-5)
    yield case("native_group_norm_backward", f(2, 4, 3), x, mean, rstd, w, **sizes,
               output_mask=[True, True, True])
    yield case("native_group_norm", f(2, 4, 2, 2), None, None, N=2, C=4, HxW=4, group=1, eps=1e-5)
    yield case("group_norm", f(2, 4, 3), w, bias, num_groups=4)


def embeddings():
    yield case("embedding", f(5, 3), i(2, 2))
    yield case("embedding", f(5, 2, dtype=BF16), i())
    yield case("embedding", f(5, 2), i(0, 2))
    for padding, scales in ((-1, False), (1, False), (-1, True)):
        yield case("embedding_dense_backward", f(2, 3, 2), i(2, 3, below=4), num_weights=5,
                   padding_idx=padding, scale_grad_by_freq=scales)


def attentions():
    q, k, v = f(1, 2, 3, 4), f(1, 2, 5, 4), f(1, 2, 5, 4)
    cpu = "_scaled_dot_product_flash_attention_for_cpu"
    yield case("scaled_dot_product_attention", q, k, v)
    yield case("scaled_dot_product_attention", q, k, v, f(3, 5))
    yield case("scaled_dot_product_attention", q, k, v, torch.tensor([[True, False, True, True, False]]),
               scale=0.25)
    yield case("scaled_dot_product_attention", q, k, v, is_causal=True)
    yield case("scaled_dot_product_attention", f(1, 4, 2, 2), f(1, 2, 2, 2), f(1, 2, 2, 2),
               enable_gqa=True)
    yield case("scaled_dot_product_attention", f(3, 4), f(5, 4), f(5, 4))
    yield case(cpu, q, k, v, is_causal=True)
    out, sums = getattr(torch.ops.aten, cpu)(q, k, v, is_causal=True)
    yield case(cpu + "_backward", f(1, 2, 3, 4), q, k, v, out, sums, dropout_p=0.0, is_causal=True)
    bias = f(1, 2, 3, 5)
    out, sums = getattr(torch.ops.aten, cpu)(q, k, v, attn_mask=bias, scale=0.5)
    yield case(cpu, q, k, v, bias, scale=0.5)
    yield case(cpu + "_backward", f(1, 2, 3, 4), q, k, v, out, sums, bias, dropout_p=0.0,
               is_causal=False, scale=0.5)


def losses():
    for reduction in (0, 1, 2):
        x, target, w = f(4, 3), torch.tensor([0, 2, 1, 2]), f(3, low=0.5)
        own = {"reduction": reduction, "ignore_index": 1}
        yield case("nll_loss_forward", x, target, w, **own)
        loss, total = torch.ops.aten.nll_loss_forward(x, target, w, reduction, 1)
        yield case("nll_loss_backward", f(4) if reduction == 0 else f(), x, target, w, total, **own)
        yield case("nll_loss_forward", x, target, None, reduction=reduction, ignore_index=-100)
        yield case("cross_entropy_loss", x, target, w, **own)
        yield case("cross_entropy_loss", x, target, None, reduction=reduction, label_smoothing=0.25)
        x = f(2, 3, 2, 1)
        target = i(2, 2, 1, below=3)
        yield case("nll_loss2d_forward", x, target, None, reduction=reduction, ignore_index=-100)
        for name in ("mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss"):
            yield case(name, f(2, 3), f(2, 3), reduction=reduction)
        yield case("mse_loss_backward", f(2, 3) if reduction == 0 else f(), f(2, 3), f(2, 3),
                   reduction=reduction)
    yield case("nll_loss_forward", f(3), i(below=3), None, reduction=1, ignore_index=-100)
    yield case("cross_entropy_loss", f(2, 3), torch.softmax(f(2, 3), 1))
    yield case("cross_entropy_loss", f(2, 3, 2), i(2, 2, below=3))


def views():
    x = f(2, 3, 4)
    yield case("view", x, size=[6, -1])
    yield case("view", f(0, 3), size=[3, 0])
    yield case("_unsafe_view", x, size=[24])
    yield case("reshape", i(2, 3), shape=[3, 2])
    yield case("view_copy", x, size=[4, 6])
    yield case("permute", x, dims=[2, 0, -2])
    yield case("transpose.int", x, dim0=0, dim1=-1)
    yield case("t", f(2, 3))
    yield case("t", f(3))
    yield case("t_", f(2, 3))
    yield case("expand", f(3, 1), size=[2, -1, 2])
    yield case("squeeze", f(1, 2, 1))
    yield case("squeeze.dim", f(1, 2, 1), dim=-1)
    yield case("squeeze.dims", f(1, 2, 1), dim=[0, 1])
    yield case("unsqueeze", f(2, 3), dim=-1)
    yield case("unflatten.int", f(2, 6), dim=1, sizes=[2, -1])
    yield case("flatten.using_ints", x, start_dim=1)
    yield case("flatten.using_ints", f())
    yield case("repeat", f(2, 1), repeats=[2, 1, 3])
    yield case("tile", f(2, 2), dims=[2])
    yield case("movedim.intlist", x, source=[0, -1], destination=[-1, 0])
    yield case("movedim.int", x, source=0, destination=2)
    yield case("alias", i(2))
    yield case("clone", f(2, dtype=BF16))
    yield case("detach", f(2))
    yield case("contiguous", f(2))
    for dtype, value in (("i64", f(6)), ("bool", f(6)), ("bf16", f(6)), ("u8", i(3)), ("f32", b(3))):
        yield case("_to_copy", value, dtype=dtype)
    yield case("copy_", f(2, 3), i(3))
    yield case("copy", i(2, 3), f(3))
    yield case("zero_", f(2, 3))
    yield case("zeros_like", f(2, 3))
    yield case("ones_like", i(2, 3), dtype="f64")
    yield case("full_like", f(2, 3), fill_value=1.5)
    yield case("new_zeros", f(2), size=[2, 2])
    yield case("new_ones", f(2), size=[])
    yield case("new_full", i(2), size=[3], fill_value=4)
    yield case("fill_.Scalar", f(2, 3), value=0.5)
    yield case("fill.Tensor", f(2, 3), scalar(2, I64))


def cuts():
    yield case("cat", [f(2, 3), f(1, 3), f(0)], dim=0)
    yield case("cat", [f(2, 1), i(2, 2)], dim=-1)
    yield case("stack", [f(2), f(2)], dim=-1)
    yield case("split.Tensor", f(5, 2), split_size=2)
    yield case("split_with_sizes", f(2, 5), split_sizes=[1, 4], dim=1)
    yield case("chunk", f(5, 2), chunks=3)
    yield case("unbind.int", f(2, 3), dim=1)
    yield case("slice.Tensor", f(5, 2), dim=0, start=1, end=-1, step=2)
    yield case("slice.Tensor", f(5, 2), dim=0, start=4, end=2)
    yield case("slice.Tensor", f(5, 2), dim=1, end=99)
    yield case("slice_backward", f(2, 2), input_sizes=[5, 2], dim=0, start=1, end=4, step=2)
    yield case("slice_scatter", f(5, 2), f(2, 2), dim=0, start=1, end=4, step=2)
    yield case("narrow", f(5, 2), dim=0, start=1, length=3)
    yield case("select.int", f(3, 2), dim=0, index=-1)
    yield case("select_backward", f(2), input_sizes=[3, 2], dim=0, index=1)
    yield case("select_scatter", f(3, 2), f(3), dim=1, index=0)
    yield case("constant_pad_nd", f(2, 3), pad=[1, 2, -1, 1], value=0.5)
    yield case("pad", f(2, 3), pad=[1, 0])
    yield case("flip", f(2, 3, 2), dims=[0, -1])
    yield case("roll", f(3, 4), shifts=[1, -1], dims=[0, 1])
    yield case("roll", f(2, 3), shifts=[2])
    for name in ("tril", "triu"):
        yield case(name, f(3, 4), diagonal=1)
        yield case(name, f(2, 3, 2), diagonal=-1)
    yield case("diagonal", f(3, 4), offset=1)
    yield case("diagonal", f(2, 3, 2), offset=-1, dim1=1, dim2=2)
    yield case("diagonal_scatter", f(3, 3), f(3))
    yield case("diag_embed", f(2, 2), offset=1)
    yield case("diag_embed", f(2, 2), dim1=0, dim2=2)
    yield case("diag", f(3), diagonal=-1)
    yield case("diag", f(3, 3), diagonal=1)


def indices():
    yield case("index_select", f(4, 2), i(3, below=4), dim=0)
    yield case("index_select", f(2, 4), i(below=4), dim=-1)
    yield case("gather", f(3, 4), i(2, 3, below=4), dim=1)
    yield case("gather", f(3, 4), i(2, 3, below=3), dim=0)
    yield case("gather", f(), i(1, below=1), dim=0)
    unique = torch.tensor([[0, 2, 1], [3, 1, 0]])
    yield case("scatter.src", f(2, 4), unique, f(2, 3), dim=1)
    yield case("scatter.src", f(2, 4), unique, f(3, 4), dim=1)
    yield case("scatter_.value", f(2, 4), unique, dim=1, value=1.5)
    yield case("scatter_add", f(2, 4), i(2, 5, below=4), f(2, 5), dim=1)
    yield case("index.Tensor", f(3, 4), [i(2, 2, low=-3, below=3)])
    yield case("index.Tensor", f(3, 4, 2), [None, i(3, below=4)])
    yield case("index.Tensor", f(3, 4, 2), [i(2, below=3), None, i(2, below=2)])
    yield case("index.Tensor", f(3, 4, 2), [None, i(2, 1, below=4), i(3, below=2)])
    yield case("index_put", f(3, 4), [torch.tensor([0, 2])], f(2, 4))
    yield case("index_put_", f(3, 4), [torch.tensor([0, 0, 2])], f(4), accumulate=True)
    yield case("index_put", f(3, 4), [None, torch.tensor([1, -1])], f())
    yield case("index_fill.int_Scalar", f(3, 2), torch.tensor([0, 2]), dim=0, value=9)
    yield case("index_add", f(3, 2), torch.tensor([0, 0]), f(2, 2), dim=0, alpha=2)
    yield case("index_copy", f(3, 2), torch.tensor([2, 0]), f(2, 2), dim=0)


def convolutions():
    base = {"stride": [1], "padding": [0], "dilation": [1], "transposed": False,
            "output_padding": [0], "groups": 1}

    def of(x, w, bias, **more):
        dims = x.dim() - 2
        own = {key: value * dims if isinstance(value, list) and len(value) == 1 else value
               for key, value in {**base, **more}.items()}
        yield case("convolution", x, w, bias, **own)
        shape = call_shape(x, w, own)
        yield case("convolution_backward", f(*shape), x, w, **own, output_mask=[True, True, True],
                   bias_sizes=[shape[1]])

    def call_shape(x, w, own):
        return torch.ops.aten.convolution(x, w, None, *own.values()).shape

    yield from of(f(2, 2, 5), f(3, 2, 3), f(3))
    yield from of(f(1, 2, 4, 4), f(2, 2, 3, 3), None, padding=[1], stride=[2])
    yield from of(f(1, 4, 4, 3), f(4, 2, 2, 1), f(4), groups=2)
    yield from of(f(1, 1, 5, 5), f(1, 1, 2, 2), None, dilation=[2], padding=[0, 1])
    yield from of(f(1, 1, 2, 3, 3), f(2, 1, 2, 2, 2), f(2))
    yield from of(f(1, 2, 3), f(2, 1, 3), f(1), transposed=True, stride=[2], padding=[1],
                  output_padding=[1])
    yield case("conv2d", f(1, 2, 3, 3), f(1, 2, 2, 2), f(1))


def lists():
    def two(**more):
        return [f(2, 2, **more), f(3, **more)]

    for name in ("abs", "neg", "exp", "tanh", "sign"):
        yield case(f"_foreach_{name}", two())
    yield case("_foreach_sqrt", two(low=0.25))
    yield case("_foreach_neg_", two())
    yield case("_foreach_zero_", two())
    yield case("_foreach_add.List", two(), two(), alpha=0.5)
    yield case("_foreach_add.Scalar", two(), scalar=1.5)
    yield case("_foreach_add_.ScalarList", two(), scalars=[1.5, 2])
    yield case("_foreach_add.Tensor", two(), f(), alpha=2)
    yield case("_foreach_sub.List", two(), two())
    yield case("_foreach_mul.Scalar", two(dtype=BF16), scalar=0.5)
    yield case("_foreach_mul_.Tensor", two(), f())
    yield case("_foreach_div.List", two(), two(low=0.5))
    yield case("_foreach_div_.ScalarList", two(), scalars=[2, 4])
    yield case("_foreach_pow.Scalar", two(low=0.25), exponent=2)
    yield case("_foreach_pow.ScalarAndTensor", two(), self=2)
    yield case("_foreach_maximum.List", two(), two())
    yield case("_foreach_clamp_min.Scalar", two(), scalar=0.5)
    yield case("_foreach_clamp_max.ScalarList", two(), scalars=[0.5, -0.5])
    yield case("_foreach_norm.Scalar", two(), ord=2)
    yield case("_foreach_norm.Scalar", two(), ord=1)
    yield case("_foreach_lerp.Scalar", two(), two(), weight=0.25)
    yield case("_foreach_lerp_.List", two(), two(), two())
    yield case("_foreach_addcmul.Scalar", two(), two(), two(), value=0.5)
    yield case("_foreach_addcdiv_.ScalarList", two(), two(), two(low=1), scalars=[0.5, 2])
    yield case("_foreach_addcmul.Tensor", two(), two(), two(), scalar([0.5, 2.0]))
    yield case("_foreach_copy_", two(), two())
    yield case("_foreach_max", two())
    options = {"lr": 0.1, "beta1": 0.5, "beta2": 0.75, "weight_decay": 0.25, "eps": 0.125}
    for name in ("_fused_adam_", "_fused_adamw_"):
        for maximizes in (False, True):
            steps = [scalar(3.0), scalar(3.0)]
            yield case(name, two(), two(), two(), two(low=0), [], steps, **options, amsgrad=False,
                       maximize=maximizes)
        yield case(name, two(), two(), two(), two(low=0), two(low=0), steps, **options, amsgrad=True,
                   maximize=False)


def cases():
    for group in (unary, binary, ternary, backward, matrices, reductions, scans, softmaxes, norms,
                  embeddings, attentions, losses, views, cuts, indices, convolutions, lists):
        yield from group()
