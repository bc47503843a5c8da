# SPDX-License-Identifier: BSD-3-Clause
"""Cases of the operators that models consist of; operator_values.py says what a case is."""

import torch
from operator_values import tensor

UNARY = {
    "6": "abs asinh atan ceil cos cosh deg2rad erf erfc exp exp2 expm1 floor frac i0 isfinite "
    "isinf isnan isneginf isposinf logical_not mish neg positive rad2deg relu round sgn "
    "sigmoid sign signbit silu sin sinc sinh square tan tanh trunc hardsigmoid hardswish selu "
    "relu6 log_sigmoid celu elu gelu hardshrink hardtanh leaky_relu softplus softshrink "
    "nan_to_num special_bessel_j0 special_bessel_j1 special_erfcx special_i0e special_i1 "
    "special_i1e special_log_ndtr special_spherical_bessel_j0 angle conj_physical",
    "6>0.125<3": "digamma lgamma log log10 log1p log2 reciprocal rsqrt sqrt special_bessel_y0 "
    "special_bessel_y1 special_entr",
    "6>-0.875<0.875": "acos asin atanh erfinv",
    "6>0.125<0.875": "logit special_ndtri",
    "4>1<3": "acosh",
}
BINARY = (
    "add.Tensor sub.Tensor mul.Tensor div.Tensor remainder.Tensor fmod.Tensor maximum minimum "
    "fmax fmin eq.Tensor ne.Tensor lt.Tensor le.Tensor gt.Tensor ge.Tensor logical_and logical_or "
    "logical_xor floor_divide heaviside xlogy.Tensor atan2 copysign.Tensor"
)
SPECIAL = "{nan,inf,-inf,-0.0,0.0}"


def unary(case):
    for x, names in UNARY.items():
        case(names, x)
    case("exp gelu silu tanh sigmoid rsqrt", "bf16.4>0.125<2", "f64.>0.125<2")
    case("exp sqrt sigmoid reciprocal tanh", "i64.4>1")
    case("abs neg sign square relu floor round logical_not", "i64.2x2>-3<4")
    case("relu exp sign sigmoid isnan isinf hardtanh round abs", "5" + SPECIAL)
    case("nan_to_num", *(dtype + SPECIAL for dtype in ("5", "bf16.5", "f16.5", "f64.5")),
         "5" + SPECIAL + " nan=1.0 posinf=2.0 neginf=-3.0")
    case("relu: 0x3", "relu_: 2x3", "exp.out: 3 3", "gelu: 6 approximate=tanh", "logit: 6 eps=0.25",
         "round.decimals: 6 decimals=1", "elu: 6 alpha=2.0 scale=1.5 input_scale=0.5",
         "celu: 6 alpha=0.5", "leaky_relu: 6 negative_slope=0.25",
         "hardtanh: 6 min_val=-0.5 max_val=1.0", "hardshrink: 6 lambd=1",
         "softplus: 6 beta=2 threshold=1",
         "threshold: 6 threshold=0.5 value=-3 | i64.6 threshold=2 value=-3",
         "bitwise_not: i64.4>-3 | b8.4 | u8.4", "mvlgamma: 4>2<4 p=2")


def binary(case):
    case(BINARY, "2x3 3>0.5<3", "i64.2x1>-4<5 i64.3>1<4")
    case("hypot logaddexp logaddexp2 special_xlog1py ldexp.Tensor: 2x3 2x1>0<2",
         "pow.Tensor_Tensor: 2x3>0.25 i64.3",
         "pow.Tensor_Scalar: 5 exponent=2 | 5>0.5 exponent=-0.5 | i64.5>-3 exponent=3",
         "pow.Scalar: 5 self=2.0", "float_power.Tensor_Scalar: 4>0 exponent=1.5",
         "add.Tensor: 2x3 2x3 alpha=0.5 | i64.3 i64.3 alpha=3 | 2x3 other=0.5",
         "add.Scalar: i64.3 other=2 | i64.3 other=1.5")
    case("add.Tensor", "bf16.3 3", "bf16.3 .", "bf16.3 f16.3", "3 f64.3", "i64.3 .", "b8.3 b8.3",
         "u8.3 i8.3", "u8.3>200<250 u8.3>100<120", "i32.3 i64.")
    case("add_.Tensor: 3 i64.3", "add.out: 3 3 f64.3", "sub.Scalar: 3 other=0.25 alpha=2",
         "rsub.Scalar: 3 other=1.0", "rsub.Tensor: 3 3", "mul.Scalar: bf16.3 other=0.375",
         "mul.Tensor: f16.3 other=3", "mul_.Scalar: 3 other=2.5", "mul.Tensor: 0x3 1x3 | 2x1x3 4x1")
    for mode in ("floor", "trunc"):
        case("div.Tensor_mode", "6 6>0.25", "i64.6>-7<8 i64.6>1<4", rounding_mode=mode)
        case("div.Scalar_mode", "6", other=-0.75, rounding_mode=mode)
    case("div_.Tensor: 3 3>1", "div.Scalar: i64.3 other=2", "remainder.Scalar: 6 other=-0.75",
         "remainder.Tensor: i64.6>-7<8 i64.6>-4<0", "fmod.Scalar: i64.6>-7<8 other=3",
         "eq.Scalar: 3 other=0.5", "gt.Scalar: i64.3 other=1.5", "le_.Scalar: 3 other=0.5",
         "maximum fmax: 3{nan,1,2} 3{1,nan,3}", "max.other: 3 3",
         "bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor gcd lcm: i64.2x3<9 i64.3<9",
         "bitwise_xor.Tensor: b8.4 b8.4", "__and__.Scalar: i64.4 other=3",
         "__ior__.Tensor bitwise_left_shift.Tensor: i64.4 i64.4",
         "__rshift__.Scalar: i64.4<99 other=2")


def ternary(case):
    case("where.self: b8.2x3 2x3 3 | b8.2x1 bf16.3 .", "where.ScalarSelf: b8.3 3 self=1.5",
         "where.ScalarOther: b8.3 i64.3 other=2", "masked_fill.Scalar: 2x3 b8.3 value=-inf",
         "masked_fill.Tensor: 2x3 b8.2x1 .", "masked_fill_.Scalar: i64.3 b8.3 value=7",
         "clamp: 6 min=-0.5 max=1 | 6 min=0.25 | i64.6>-4 max=2 | i64.6>-4 min=-1.5 max=2",
         "clamp.Tensor: 2x3 3<0 3>0 | 2x3 - 3 | 2x3 3", "clamp_min: 6 min=0.5",
         "clamp_max.Tensor: 6 6", "clamp_: 6 min=-1 max=1", "lerp.Scalar: 6 6 weight=0.25",
         "lerp.Tensor: 2x3 2x3 3", "addcmul: 2x3 2x1 3 value=0.5 | i64.3 i64.3 i64.3 value=2",
         "addcdiv: 2x3 2x3 3>1 value=-1.5", "addcdiv_: 3 3 3>1")


def backward(case):
    case("sigmoid_backward tanh_backward silu_backward mish_backward hardsigmoid_backward "
         "hardswish_backward", "6 6>-4<4")
    case("gelu_backward", "6 6", "bf16.6 bf16.6 approximate=tanh")
    case("threshold_backward", "6 6", threshold=0)
    case("leaky_relu_backward", "6 6", negative_slope=0.25, self_is_result=False)
    for is_result in (False, True):
        case("elu_backward", "6 6", alpha=0.5, scale=2, input_scale=1.5, is_result=is_result)
    case("hardtanh_backward: 6 6 min_val=-1 max_val=1",
         "hardshrink_backward softshrink_backward: 6 6 lambd=0.5",
         "softplus_backward: 6 6 beta=2 threshold=2", "logit_backward: 6 6>0<1 | 6 6>0<1 eps=0.25")
    x = tensor("6")
    case("log_sigmoid_backward", ["6", x, torch.exp(-x.abs())])
    case("native_dropout_backward", "6 b8.6", scale=2.0)


def matrices(case):
    case("mm: 3x4 4x2 | 3x0 0x2 | i64.2x3 i64.3x2 | bf16.3x4 bf16.4x2 | f64.3x4 f64.4x2",
         "mm.out: 3x4 4x2 3x2", "addmm: 2 3x4 4x2 alpha=0.5 beta=2 | 3x1 3x4 4x2",
         "addmm_: 3x2 3x4 4x2 beta=0", "bmm: 2x3x4 2x4x2", "baddbmm: 3x2 2x3x4 2x4x2 alpha=2",
         "dot vdot: 5 5", "mv: 3x4 4", "addmv: 3 3x4 4 alpha=0.5 beta=0.25",
         "matmul: 3 3 | 3 3x2 | 2x3 3 | 2x2x3 3x2 | 2x1x2x3 2x3x2 | 3 2x3x2",
         "linear: 2x2x3 4x3 4 | 3 4x3 | bf16.2x3 bf16.4x3 bf16.4", "outer: 3 2")
    case("einsum", "[2x3 3x2] equation=ij,jk->ik", "[1x2x3x2 1x2x2x2] equation=bhqd,bhkd->bhqk",
         "[2x2x3 3x2] equation=...ij,...jk", "[3x3] equation=ii->i", "[2x3] equation=ij->",
         "[2 2 3] equation=i,j,k->kji", "[2x2x3 3x2] equation=bsd,df->bsf")


def reductions(case):
    case("sum nansum prod", "2x3", "i64.2x3", "0x3")
    for dim in ([0], [-1], [0, 2], [], None):
        case("sum.dim_IntList", "2x3x2", dim=dim, keepdim=True)
        case("mean.dim", "2x3x2", dim=dim)
    case("sum.dim_IntList: b8.2x3 dim=[1] | 2x3 dim=[1] dtype=f64 | bf16.4x3 dim=[0] | . dim=[0]",
         "sum.IntList_out: 2x3 3 dim=[0]", "nansum: 3{1,nan,2}",
         "prod.dim_int: 2x3 dim=1 | 2x0 dim=1 keepdim=True", "mean: 2x3 | i64.2x3 dtype=f32")
    case("amax amin", "2x3x2 dim=[0,-1]", "2x3 dim=[]", "i64.2x3 dim=[1] keepdim=True",
         "2{1,nan} dim=[0]")
    for name in ("max", "min"):
        case(name, "2x3")
        case(f"{name}.dim", "3x4! dim=1", "bf16.3x4! dim=0 keepdim=True", "i64.3x4<3 dim=-1",
             "b8.3x2 dim=1", "3{1,nan,3} dim=0")
        case(f"arg{name}", "3x4!", "i64.3x4<3 dim=0 keepdim=True", ". dim=0")
    case("max.dim_max: 3x4! 3 i64.3 dim=1", "aminmax: 2x3 dim=1", "median: 2x3! | .",
         "median.dim: 3x4! dim=1 | 1x3{1,nan,3} dim=1", "nanmedian: 4{1,nan,3,2}",
         "nanmedian.dim: 1x4{1,nan,3,2} dim=1", "kthvalue: 3x4! k=2 | 3x4! k=3 dim=0 keepdim=True",
         "mode: i64.3x6<3 dim=1 | i64.6x2<3 dim=0 keepdim=True")
    for name in ("var", "std"):
        case(f"{name}.correction", "3x4 dim=[1]", "3x4 dim=None correction=0 keepdim=True")
        case(name, "3x4", unbiased=False)
    case("var_mean.correction: 3x4 dim=[0] correction=2", "std_mean.correction: 3x4 dim=[0,1]",
         "var.correction: 1 dim=[0]")
    for name in ("any", "all"):
        case(name, "b8.2x3", "0")
        case(f"{name}.dim", "2x3", dim=1)
        case(f"{name}.dims", "b8.2x3x2", dim=[0, 2], keepdim=True)
        case(f"{name}.dim", "u8.2x3<2", dim=0)
    case("count_nonzero.dim_IntList", "i64.2x3<2", dim=[1])
    case("logsumexp", "2x3 dim=[1]", "2x2{-inf,-inf,inf,1} dim=[1] keepdim=True")
    orders = (2, 1, 0, 3, 0.5, -1, "inf", "-inf")
    case("linalg_vector_norm", *(f"2x3>0.125 ord={order} dim=[1]" for order in orders), "2x3",
         "bf16.2x3 dtype=f32 keepdim=True")
    case("norm.Scalar", "2x3", p=2)
    case("norm.ScalarOpt_dim", "2x3 p=None dim=[0]", "2x3 p=1 dim=[0] keepdim=True")


def scans(case):
    case("cumsum cumprod: 2x3 dim=1 | i64.3x2 dim=0 | . dim=0 | bf16.3 dim=0 dtype=f32",
         "cumsum_: 2x3 dim=-1", "logcumsumexp: 3x2 dim=0",
         "cummax cummin: 3x4<-1 dim=1 | 3{1,nan,3} dim=0")
    for descending in (False, True):
        case("sort", "3x4!", dim=1, descending=descending)
        case("sort.stable", "i64.3x4<3", dim=0, descending=descending, stable=True)
        case("argsort", "3x4!", descending=descending)
    case("sort: 4{1,nan,3,-inf} | .", "topk: 3x4! k=2 | 3x4! k=2 dim=0 largest=False",
         "topk.values: 3x4! 3x1 i64.3x1 k=1")


def softmaxes(case):
    case("_softmax _log_softmax", "2x3 dim=-1 half_to_float=False",
         "2x3x2 dim=1 half_to_float=False", "bf16.2x3 dim=0 half_to_float=False")
    case("softmax.int: f16.2x3 dim=1 dtype=f32", "log_softmax.int: 3 dim=0",
         "softmax.int: 2x0 dim=1", "_safe_softmax: 2x2{-inf,-inf,0,-inf} dim=1")
    case("_softmax_backward_data", [tensor("2x3"), torch.softmax(tensor("2x3"), 1)], dim=1,
         input_dtype="f32")
    case("_log_softmax_backward_data", [tensor("3x2"), torch.log_softmax(tensor("3x2"), 0)], dim=0,
         input_dtype="f32")


def layer_norms(case):
    for dims in ([3], [2, 3]):
        shape = {"normalized_shape": dims}
        w, bias, x = (tensor("x".join(map(str, sizes))) for sizes in (dims, dims, [2, 2, 3]))
        case("native_layer_norm", [x, w, bias], **shape, eps=1e-5)
        _, mean, rstd = torch.native_layer_norm(x, dims, w, bias, 1e-5)
        back = ["2x2x3", x, mean, rstd]
        for mask in ([True, True, True], [True, False, True]):
            case("native_layer_norm_backward", [*back, w, bias], **shape, output_mask=mask)
        case("native_layer_norm", [x, None, None], **shape, eps=1e-3)
        case("native_layer_norm_backward", [*back, None, None], **shape,
             output_mask=[True, False, False])
        case("_fused_rms_norm", [x, w], **shape, eps=1e-5)
        case("_fused_rms_norm", [x.bfloat16(), w.bfloat16()], **shape)
        case("rms_norm", [x, w], **shape)
    case("layer_norm", "2x4 4", normalized_shape=[4])
    case("native_layer_norm", "bf16.2x4 bf16.4 bf16.4", "0x4 4 4", normalized_shape=[4], eps=1e-5)


def norms(case):
    x, w = tensor("2x3"), tensor("3")
    _, rstd = torch.ops.aten._fused_rms_norm(x, [3], w, 1e-5)

    def by_autograd(grad, x, _, w):
        x.requires_grad_(), w.requires_grad_()
        return torch.autograd.grad(torch.rms_norm(x, [3], w, 1e-5), [x, w], grad)

    case("_fused_rms_norm_backward", ["2x3", x, rstd, w], normalized_shape=[3],
         output_mask=[True, True], by=by_autograd)
    x, w, bias = tensor("2x4x3"), tensor("4"), tensor("4")
    sizes = {"N": 2, "C": 4, "HxW": 3, "group": 2}
    case("native_group_norm", [x, w, bias], **sizes, eps=1e-5)
    _, mean, rstd = torch.native_group_norm(x, w, bias, 2, 4, 3, 2, 1e-5)
    case("native_group_norm_backward", ["2x4x3", x, mean, rstd, w], **sizes,
         output_mask=[True, True, True])
    case("native_group_norm", "2x4x2x2 - -", N=2, C=4, HxW=4, group=1, eps=1e-5)
    case("group_norm", ["2x4x3", w, bias], num_groups=4)


def embeddings(case):
    case("embedding", "5x3 i64.2x2", "bf16.5x2 i64.", "5x2 i64.0x2")
    for padding, scales in ((-1, False), (1, False), (-1, True)):
        case("embedding_dense_backward", "2x3x2 i64.2x3<4", num_weights=5, padding_idx=padding,
             scale_grad_by_freq=scales)


def attentions(case):
    q, k, v = tensor("1x2x3x4"), tensor("1x2x5x4"), tensor("1x2x5x4")
    sdpa = "scaled_dot_product_attention"
    case(sdpa, [q, k, v], [q, k, v, "3x5"])
    case(sdpa, [q, k, v, "b8.1x5{1,0,1,1,0}"], scale=0.25)
    case(sdpa, [q, k, v], is_causal=True)
    case(sdpa, "1x4x2x2 1x2x2x2 1x2x2x2 enable_gqa=True", "3x4 5x4 5x4")
    cpu = "_scaled_dot_product_flash_attention_for_cpu"
    case(cpu, [q, k, v], is_causal=True)
    case(cpu, [q.double(), k.double(), v.double()], [q.bfloat16(), k.bfloat16(), v.bfloat16()])
    forward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    out, sums = forward(q, k, v, is_causal=True)
    case(cpu + "_backward", ["1x2x3x4", q, k, v, out, sums], dropout_p=0.0, is_causal=True)
    bias = tensor("1x2x3x5")
    out, sums = forward(q, k, v, attn_mask=bias, scale=0.5)
    case(cpu, [q, k, v, bias], scale=0.5)
    case(cpu + "_backward", ["1x2x3x4", q, k, v, out, sums, bias], dropout_p=0.0, is_causal=False,
         scale=0.5)


def losses(case):
    for reduction in (0, 1, 2):
        x, target, w = tensor("4x3"), tensor("i64.4{0,2,1,2}"), tensor("3>0.5")
        own, plain = {"reduction": reduction, "ignore_index": 1}, {"reduction": reduction}
        case("nll_loss_forward", [x, target, w], **own)
        _, total = torch.ops.aten.nll_loss_forward(x, target, w, reduction, 1)
        grad = "." if reduction else "4"
        case("nll_loss_backward", [grad, x, target, w, total], **own)
        case("nll_loss_forward", [x, target, None], **plain, ignore_index=-100)
        case("cross_entropy_loss", [x, target, w], **own)
        case("cross_entropy_loss", [x, target, None], **plain, label_smoothing=0.25)
        case("nll_loss2d_forward", "2x3x2x1 i64.2x2x1<3 -", **plain, ignore_index=-100)
        case("mse_loss smooth_l1_loss huber_loss l1_loss", "2x3 2x3", **plain)
        case("mse_loss_backward", ". 2x3 2x3" if reduction else "2x3 2x3 2x3", **plain)
    case("nll_loss_forward", "3 i64.<3 -", reduction=1, ignore_index=-100)
    case("cross_entropy_loss", [tensor("2x3"), torch.softmax(tensor("2x3"), 1)],
         "2x3x2 i64.2x2<3")


ALL = [unary, binary, ternary, backward, matrices, reductions, scans, softmaxes, layer_norms, norms,
       embeddings, attentions, losses]
