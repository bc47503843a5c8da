# SPDX-License-Identifier: BSD-3-Clause
"""Operators that models consist of, as rows; operator_calls.py says what a row is."""

from calls import foreach

NON_DECREASING = (
    "asinh atan ceil deg2rad erf exp exp2 expm1 floor rad2deg relu round sgn sigmoid sign sinh "
    "tanh trunc nan_to_num"
)
UNARY = (
    "abs acos acosh angle asin atanh cos cosh digamma erfinv frac hardsigmoid i0 lgamma log log10 "
    "log1p log2 logical_not logit mish reciprocal relu6 rsqrt selu sigmoid signbit silu sin sinc "
    "special_entr special_i1 special_ndtri sqrt square tan isnan isinf isfinite isneginf isposinf "
    "celu elu gelu hardtanh leaky_relu softplus softshrink hardshrink special_modified_bessel_k0 "
    "neg positive erfc special_erfcx"
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
    "clamp_min.Tensor clamp_max.Tensor special_xlog1py special_zeta ldexp.Tensor "
    "float_power.Tensor_Tensor true_divide.Tensor igamma max.other min.other"
)
SCALAR = (
    "add.Scalar sub.Scalar mul.Scalar div.Scalar fmod.Scalar remainder.Scalar eq.Scalar ne.Scalar "
    "lt.Scalar le.Scalar gt.Scalar ge.Scalar rsub.Scalar add_.Scalar sub_.Scalar mul_.Scalar "
    "div_.Scalar copysign.Scalar xlogy.Scalar_Other fmod_.Scalar special_xlog1py.other_scalar"
)


def unary(row):
    row(NON_DECREASING, "ab")
    row(UNARY, "ab")
    row(IN_PLACE, "ab")
    row("threshold: ab threshold=0.5 value=0.0 | ab threshold=0.5 value=2.0",
        "threshold_: ab threshold=0.5 value=0.0", "round.decimals: ab decimals=2",
        "polygamma: ab n=1", "clamp: ab min=-0.5 max=0.5 | ab max=0.5",
        "clamp_ clamp_min: ab min=0.0", "clamp_max: ab max=0.5",
        "pow.Tensor_Scalar: ab exponent=2 | ab exponent=0.5", "pow_.Scalar: ab exponent=3",
        "pow.Scalar: ab self=2.0", "div.Scalar_mode: ab other=3.0 rounding_mode=floor",
        "gelu: ab approximate=tanh", "leaky_relu: ab negative_slope=0.2", "bitwise_not: i64.ab<64",
        "logical_not: b8.ab", "neg: i64.ab<64", "abs: i32.ab<64",
        "clone alias detach contiguous: ab", "view.dtype: ab dtype=i32")
    row("_to_copy", "ab dtype=f64", "ab dtype=bf16", "ab dtype=i32", "ab dtype=i64", "ab dtype=b8",
        "i32.ab<64 dtype=f32", "i32.ab<64 dtype=f16", "i32.ab<64 dtype=b8", "i32.ab<64 dtype=i64",
        "bf16.ab dtype=f32", "ab")
    row("fill_.Scalar", "ab value=0.0", "ab value=2.5")


def scalars(row):
    row(SCALAR, "ab", other=2.0)
    row("bitwise_and.Scalar bitwise_or.Scalar bitwise_xor.Scalar: i64.ab<64 other=3",
        "add.Scalar: ab other=2.0 alpha=3.0", "mul.Scalar: ab other=-2.0 | i64.ab<64 other=3",
        "masked_fill.Scalar: ab b8.ab value=0.0 | ab b8.b value=-1.0",
        "masked_fill_.Scalar: ab b8.ab value=0.0", "masked_fill.Tensor: ab b8.ab .",
        "lerp.Scalar lerp_.Scalar: ab ab weight=0.25")


def binary(row):
    row(BINARY, "ab ab", "ab b", "ab .", "b ab", "ab 1b", "abc bc", "ab1 bc")
    row(BINARY_PLAIN, "ab ab", "ab b")
    row("add.Tensor mul.Tensor sub.Tensor maximum: i64.ab<64 i64.ab<64",
        "add.Tensor: ab ab alpha=2.0", "sub.Tensor: ab ab alpha=-1.0",
        "mul.Tensor: abcd 1b11 | a a", "add.Tensor: a a | . . | bf16.ab f32.ab",
        "div.Tensor_mode: ab ab rounding_mode=trunc",
        "bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor gcd: i64.ab<64 i64.ab<64",
        "bitwise_left_shift.Tensor __rshift__.Tensor: i64.ab<8 i64.ab<8",
        "logical_and: b8.ab b8.ab",
        "add_.Tensor sub_.Tensor mul_.Tensor div_.Tensor copy_: ab ab | ab b | ab .",
        "logical_and_ fmod_.Tensor pow_.Tensor clamp_min_.Tensor eq_.Tensor: ab ab")


def ternary(row):
    row("where.self: b8.ab ab ab | b8.b ab . | b8.a1 ab b", "clamp.Tensor: ab ab ab | ab b -",
        "lerp.Tensor lerp_.Tensor: ab ab ab",
        "addcmul addcdiv addcmul_ addcdiv_: ab ab ab | ab b ab value=0.5")


def backward(row):
    row("threshold_backward: ab ab threshold=0.0 | abc abc threshold=0.0",
        "gelu_backward silu_backward sigmoid_backward tanh_backward: ab ab | abc abc",
        "gelu_backward: ab ab approximate=tanh", "logit_backward: ab ab eps=0.1",
        "native_dropout_backward: ab b8.ab scale=2.0",
        "hardtanh_backward: ab ab min_val=-1.0 max_val=1.0",
        "leaky_relu_backward: ab ab negative_slope=0.1 self_is_result=False")


def with_out(row):
    row("exp.out relu.out sqrt.out neg.out sigmoid.out tanh.out abs.out: ab ab",
        "add.out sub.out mul.out div.out maximum.out logaddexp.out: ab ab ab | ab b ab",
        "pow.Tensor_Scalar_out: ab ab exponent=2", "clamp.out: ab ab min=0.0",
        "eq.Tensor_out: ab ab b8.ab", "addcmul.out: ab ab ab ab",
        "lerp.Scalar_out: ab ab ab weight=0.5", "where.self_out: b8.ab ab ab ab")


def lists(row):
    foreach(row, "[ab b]", "add.List sub.List mul.List div.List maximum.List pow.List add_.List "
            "sub_.List mul_.List div_.List maximum_.List: L L", "add_.List: L L alpha=-0.1",
            "add.Scalar mul.Scalar add_.Scalar mul_.Scalar div_.Scalar sub.Scalar div.Scalar "
            "clamp_max_.Scalar clamp_min_.Scalar: L scalar=2.0", "pow.Scalar: L exponent=2.0",
            "add_.ScalarList mul.ScalarList div_.ScalarList div.ScalarList mul_.ScalarList: "
            "L scalars=[2.0,3.0]", "mul.Tensor mul_.Tensor div.Tensor div_.Tensor: L .")
    for name in ("addcmul_", "addcdiv_", "addcmul", "addcdiv"):
        foreach(row, "[ab b]", name + ".Scalar: L L L value=0.5",
                name + ".ScalarList: L L L scalars=[0.5,-1.0]")
    foreach(row, "[ab b]", "lerp_.Scalar lerp.Scalar: L L weight=0.1",
            "sqrt sqrt_ neg neg_ exp exp_ abs reciprocal_ zero_ cos: L", "copy_: L L")
    foreach(row, "[ab b a]", "norm.Scalar: L ord=2.0 | L ord=1.0 | L ord=inf | L ord=0.0")


def fused(row):
    adam = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "weight_decay": 1e-2, "eps": 1e-8}
    adam.update(amsgrad=False, maximize=False)
    row("_fused_adamw_ _fused_adam_", "[ab] [ab] [ab] [ab] [] [.]", **adam)
    row("_fused_adamw_", "[ab b] [ab b] [ab b] [ab b] [] [. .]", **adam)
    row("_fused_adam_", "[ab] [ab] [ab] [ab] [ab] [.]", **{**adam, "amsgrad": True})


def matmuls(row):
    row("mm: mk kn | bf16.mk bf16.kn",
        "addmm: n mk kn | mn mk kn | 1n mk kn alpha=0.5 beta=2.0 | 1 mk kn", "addmm_: mn mk kn",
        "bmm: bmk bkn", "baddbmm: bmn bmk bkn | mn bmk bkn beta=0.0 | 1mn bmk bkn",
        "baddbmm_: bmn bmk bkn", "dot: k k", "mv: mk k", "mm.out: mk kn mn",
        "addmm.out: n mk kn mn", "bmm.out: bmk bkn bmn",
        "_scaled_mm: f8e4m3fn.{32}{64} f8e4m3fn.{64}{48} . . out_dtype=bf16")
    row("_grouped_mm", "bf16.{32}{16} bf16.{4}{16}{64} i32.{4}<9",
        "bf16.{4}{32}{16} bf16.{4}{16}{64}")


def reductions(row):
    row("sum nansum prod mean amax amin max min", "ab", "abc")
    row("sum.dim_IntList mean.dim amax amin var.correction std.correction", "ab dim=[0]",
        "ab dim=[-1] keepdim=True", "abc dim=[0,2]", "abc dim=[1]")
    row("sum.dim_IntList: ab dim=[0] dtype=f64 | i64.ab<64 dim=[0]", "sum: b8.ab",
        "mean.dim: bf16.ab dim=[1]", "sum: .", "nansum: ab dim=[1]")
    row("prod.dim_int max.dim min.dim median.dim mode argmax argmin", "ab dim=0",
        "abc dim=-1 keepdim=True")
    row("nanmedian.dim: ab dim=1", "kthvalue: ab k=1 dim=0",
        "median argmax argmin all any var.correction std.correction: ab",
        "var.correction: ab dim=[1] correction=0",
        "var_mean.correction: ab dim=[1] keepdim=True | abc dim=[0]",
        "any.dim all.dim: ab dim=0 | b8.ab dim=1 keepdim=True", "any.dims: abc dim=[0,1]",
        "logsumexp: ab dim=[0] | abc dim=[1,2] keepdim=True")
    for order in (2, 1, 3.5, 0, "inf", "-inf"):
        row("linalg_vector_norm", f"ab ord={order}", f"abc ord={order} dim=[1] keepdim=True")
    row("linalg_vector_norm: ab dim=[0] | ab dtype=f64", "norm.Scalar: ab p=2 | ab p=1",
        "linalg__powsum: ab ord=2",
        "cumsum cumprod logcumsumexp cummax cummin: ab dim=0 | abc dim=-1", "cumsum_: ab dim=1",
        "sum.IntList_out: ab b dim=[0]", "mean.out amax.out: ab a dim=[1]",
        "histc: ab bins=4 min=0 max=1")


def norms(row):
    row("_softmax _log_softmax", "ab dim=-1 half_to_float=False", "abc dim=0 half_to_float=False",
        "abcd dim=-1 half_to_float=False")
    row("_safe_softmax", "abc", dim=2)
    row("_softmax_backward_data _log_softmax_backward_data", "ab ab dim=-1 input_dtype=f32",
        "abc abc dim=1 input_dtype=f32", "abcd abcd dim=-1 input_dtype=f32")
    row("_softmax.out", "ab ab", dim=1, half_to_float=False)
    last, two = {"normalized_shape": "[c]"}, {"normalized_shape": "[b,c]"}
    row("native_layer_norm", "abc c c", "abc c -", "abc - -", "ac c c", **last, eps=1e-5)
    row("native_layer_norm", "abc bc bc", **two, eps=1e-5)
    row("_fused_rms_norm", "abc c", "ac c", "abc -", **last, eps=1e-5)
    row("_fused_rms_norm", "abc bc", **two, eps=1e-5)
    row("native_layer_norm_backward", "abc abc ab1 ab1 c c", "ac ac a1 a1 c c", **last,
        output_mask=[True, True, True])
    row("native_layer_norm_backward", "ac ac a1 a1 c c", **last, output_mask=[True, False, True])
    row("native_layer_norm_backward", "ac ac a1 a1 - -", **last, output_mask=[True, False, False])
    row("native_layer_norm_backward", "ac ac a1 a1 c -", **last, output_mask=[False, True, False])
    row("_fused_rms_norm_backward", "abc abc ab1 c", "ac ac a1 c", **last, output_mask=[True, True])
    row("_fused_rms_norm_backward", "ac ac a1 -", **last, output_mask=[True, False])
    row("native_group_norm", "n{8}{6}{6} {8} {8}", "n{8}{36} - -", N="n", C=8, HxW=36, group=2,
        eps=1e-5)


def embeddings(row):
    row("embedding", "ve i64.ab<v", "ve i64.a<v", "ve i32.abc<v", "ve i64.ab<v padding_idx=0")
    back = {"num_weights": "v", "padding_idx": -1}
    row("embedding_dense_backward", "abe i64.ab<v", "ae i64.a<v", **back, scale_grad_by_freq=False)
    row("embedding_dense_backward", "abe i64.ab<v", **back, scale_grad_by_freq=True)


def attention(row):
    qkv, same, stats = "bf16.nhsd bf16.nhtd bf16.nhtd", "bf16.nhsd", "f32.nhs"
    flash = "_scaled_dot_product_flash_attention"
    row(flash, qkv, dropout_p=0.0, is_causal=True)
    row(flash, qkv, dropout_p=0.0, is_causal=False, return_debug_mask=True, scale=0.25)
    efficient = "_scaled_dot_product_efficient_attention"
    row(efficient, qkv + " - compute_log_sumexp=True",
        qkv + " bf16.nhst compute_log_sumexp=True is_causal=False",
        qkv + " bf16.1hst compute_log_sumexp=False")
    row("_scaled_dot_product_cudnn_attention", qkv + " -", compute_log_sumexp=True)
    row(flash + "_backward", f"{same} {qkv} {same} {stats} - - u64.{{2}} u64.", max_q="s",
        max_k="t", dropout_p=0.0, is_causal=True)
    for bias, wanted in (("-", False), ("bf16.nhst", True)):
        row(efficient + "_backward", f"{same} {qkv} {bias} {same} {stats} i64. i64.", dropout_p=0.0,
            grad_input_mask=[True, True, True, wanted])


def losses(row):
    for reduction in (0, 1, 2):
        options = {"reduction": reduction, "ignore_index": -100}
        row("nll_loss_forward", "nc i64.n<c -", "nc i64.n<c c", **options)
        row("nll_loss2d_forward", "ncab i64.nab<c -", **options)
        grad = "n" if reduction == 0 else "."
        row("nll_loss_backward", f"{grad} nc i64.n<c - .", f"{grad} nc i64.n<c c .", **options)
        grad = "nab" if reduction == 0 else "."
        row("nll_loss2d_backward", f"{grad} ncab i64.nab<c - .", **options)
    row("nll_loss_forward", "nc i64.n<c -", reduction=2, ignore_index=1)


def creation(row):
    row("empty_like zeros_like ones_like rand_like randn_like: ab", "zeros_like: ab dtype=f64",
        "full_like: ab fill_value=2.0", "randint_like: ab high=9",
        "new_empty new_zeros new_ones: ab size=[a,b] | ab size=[b,a]",
        "new_full: ab size=[a,b] fill_value=2.0", "new_zeros: ab size=[] dtype=f64",
        "new_empty_strided: ab size=[a,b] stride=[b,1]",
        "native_dropout: ab p=0.5 train=True | abc p=0.5 train=True", "bernoulli: ab",
        "bernoulli_.float: ab p=0.5", "uniform_ normal_ exponential_: ab",
        "multinomial: ab num_samples=2 replacement=True", "equal: ab ab", "_local_scalar_dense: .")


def convolutions(row):
    plain = {"transposed": False, "output_padding": [0, 0], "dilation": [1, 1], "groups": 1}
    cut = {**plain, "stride": [4, 4], "padding": [0, 0]}
    around = {**plain, "stride": [1, 1], "padding": [1, 1]}
    mask = {"output_mask": [True, True, True], "bias_sizes": [8]}
    row("convolution", "n{4}{16}{16} {8}{4}{3}{3} {8}", "n{4}{16}{16} {8}{4}{3}{3} -", **around)
    row("convolution", "n{4}{16}{16} {8}{4}{4}{4} {8}", **cut)
    row("convolution_backward", "n{8}{16}{16} n{4}{16}{16} {8}{4}{3}{3}", **around, **mask)
    row("convolution_backward", "n{8}{4}{4} n{4}{16}{16} {8}{4}{4}{4}", **cut, **mask)


def reshapes(row):
    some = ["abc size=[a*b,c]", "ab size=[a*b]", "a(bc) size=[a,b,c]", "ab size=[a,1,b]",
            "ab size=[1,-1]", "abcd size=[a*b,c,d]"]
    every = [some[0], "abc size=[a,b*c]", "abc size=[a*b*c]", some[1], "ab size=[b,a]",
             "(ab)c size=[a,b,c]", some[2], "(ab)c size=[a,b*c]", "(abc) size=[a,b,c]", some[3],
             "a1b size=[a,b]", "1ab size=[a,b]", some[4], "ab(cd) size=[a,b,c,d]",
             "abcd size=[a,b,c*d]", some[5], "abcd size=[a*b,c*d]", "ab size=[a,b]"]
    row("view", *every)
    row("_unsafe_view", *some)
    row("view_copy", *every)
    row("reshape", *(words.replace("size", "shape") for words in some))


def views(row):
    row("t: ab | a", "t_: ab",
        "transpose.int: ab dim0=0 dim1=1 | abc dim0=1 dim1=-1 | abcd dim0=1 dim1=2",
        "permute: abc dims=[2,0,1] | abcd dims=[0,2,1,3] | ab dims=[1,0]",
        "unsqueeze: ab dim=0 | ab dim=1 | ab dim=-1",
        "squeeze.dim squeeze_.dim: a1b dim=1 | ab1 dim=-1 | 1ab dim=0 | ab dim=0",
        "squeeze squeeze_: a1b1", "squeeze.dims: a1b1 dim=[1,3]")
    row("expand", "a1 size=[a,b]", "1ab size=[c,a,b]", "ab size=[c,a,b]", "ab size=[c,-1,-1]",
        "ab size=[a,b]")
    row("expand_copy: a1 size=[a,b]", "expand: . size=[a,b]",
        "repeat: ab repeats=[2,1] | ab repeats=[1,1] | ab repeats=[3,1,2]",
        "unbind.int: ab dim=0 | abc dim=1",
        "as_strided: ab size=[a,b] stride=[b,1] | ab size=[b,a] stride=[1,b]",
        "diagonal diag diag_embed linalg_qr tril: ab", "triu: abc diagonal=1", "triu_: ab",
        "view_as_complex: ab{2}")


def joining(row):
    row("cat: [ab ab] | [ab cb] | [ab ac] dim=1 | [ab ab ab] dim=-1 | [abc adc] dim=1 | [ab]",
        "cat.out: [ab ab] {cat}b",
        "stack: [ab ab] | [ab ab ab] dim=1 | [ab ab] dim=-1 | [. .] | [a a] dim=1")
    row("split.Tensor", "ab split_size=1", "ab split_size=2", "ab split_size=4", "ab split_size=5",
        "abc split_size=2 dim=1")
    row("split_with_sizes", "(aa)b split_sizes=[a]*a", "a{12} split_sizes=[4,8] dim=1",
        "a{12}b split_sizes=[4,4,4] dim=1")
    row("unsafe_split.Tensor", "ab", split_size=2, dim=1)
    row("split_with_sizes_copy", "a{12}", split_sizes=[4, 8], dim=1)
    row("slice.Tensor", "ab end=2", "ab", "ab start=0 end=9223372036854775807",
        "ab dim=1 start=1 end=-1", "ab dim=-1 step=2", "abc dim=2 start=1")
    row("slice_backward", "{3}b input_sizes=[8,b] dim=0 start=1 end=4 step=1",
        "a{3} input_sizes=[a,8] dim=1 start=1 end=4 step=1")
    row("select.int", "ab dim=0 index=0", "abc dim=1 index=0", "abc dim=-1 index=-1")
    row("select_backward", "b input_sizes=[a,b] dim=0 index=0",
        "ac input_sizes=[a,b,c] dim=1 index=0")
    row("slice_scatter", "ab {1}b", start=0, end=1)
    row("select_scatter", "ab b dim=0 index=0", "abc ac dim=1 index=0")
    row("narrow", "ab", dim=0, start=0, length=1)
    row("constant_pad_nd", "ab pad=[1,2]", "ab pad=[1,2] value=1.0", "abc pad=[0,0,1,1]")
    row("flip", "ab dims=[0]", "abc dims=[0,2]")
    row("roll", "ab shifts=[1] dims=[0]", "ab shifts=[1]", "abc shifts=[1,-1] dims=[1,2]")


def indexing(row):
    row("index_select", "ab i64.c<a dim=0", "ab i64.c<b dim=1", "abc i64.d<c dim=-1")
    row("gather", "ab i64.cb<a dim=0", "ab i64.ab<a dim=0", "ab i64.a1<b dim=1",
        "ab i64.1b<a dim=0", "abc i64.ab1<c dim=2")
    row("scatter.src scatter_add scatter_.src scatter_add_", "ab i64.ab<b ab dim=1",
        "ab i64.ab<a ab dim=0")
    row("scatter.src: ab i64.a1<b a1 dim=1", "scatter_add: abc i64.ab1<c ab1 dim=2",
        "scatter.value: ab i64.a1<b dim=1 value=1.0", "scatter_.value: ab i64.ab<b dim=1 value=1.0")
    row("index.Tensor", "ab [i64.c<a]", "ab [- i64.c<b]", "ab [i64.c<a i64.c<b]",
        "abc [i64.d<a - i64.d<c]", "abc [- i64.d<b]", "abc [i64.de<a]", "abc [i64.d1<a i64.e<b]")
    row("index_put index_put_", "ab [i64.c<a] cb", "ab [i64.c<a] cb accumulate=True",
        "ab [- i64.c<b] ac", "ab [i64.c<a i64.c<b] c", "ab [i64.c<a] .")
    row("index_add index_copy: ab i64.c<a cb dim=0",
        "index_fill.int_Scalar: ab i64.c<a dim=0 value=1.0", "sort: ab | ab dim=0 | abc dim=1",
        "topk: ab k=1 | ab k=1 dim=0 | abc k=1 dim=1",
        "sort.stable: ab stable=True | ab stable=True dim=0 | abc stable=True dim=1",
        "bucketize.Tensor: ab c", "nonzero: ab", "masked_select: ab b8.ab")


ALL = [unary, scalars, binary, ternary, backward, with_out, lists, fused, matmuls, reductions,
       norms, embeddings, attention, losses, creation, convolutions, reshapes, views, joining,
       indexing]
