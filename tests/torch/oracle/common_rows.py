# SPDX-License-Identifier: BSD-3-Clause
"""The operators whose decisions are asked for over many sizes and placements: row(name, tensors,
attributes). A tensor is [DTYPE.]DIMS[<BELOW], a dim a letter, 1, a number in braces or a product of
letters in parentheses; "." is a scalar, "-" an absent tensor, "[...]" a list. An attribute that
depends on sizes is a function of them.
"""

from torch_rows_moving import moving
from torch_rows_pointwise import pointwise


def matmuls(row):
    row("mm", "mk kn")
    row("mm", "bf16.mk bf16.kn")
    row("addmm", "n mk kn")
    row("addmm", "mn mk kn")
    row("addmm", "1n mk kn", alpha=0.5, beta=2.0)
    row("addmm", "1 mk kn")
    row("addmm_", "mn mk kn")
    row("bmm", "bmk bkn")
    row("baddbmm", "bmn bmk bkn")
    row("baddbmm", "mn bmk bkn", beta=0.0)
    row("baddbmm", "1mn bmk bkn")
    row("baddbmm_", "bmn bmk bkn")
    row("dot", "k k")
    row("mv", "mk k")
    row("mm.out", "mk kn mn")
    row("addmm.out", "n mk kn mn")
    row("bmm.out", "bmk bkn bmn")
    row("_scaled_mm", "f8e4m3fn.{32}{64} f8e4m3fn.{64}{48} . .", out_dtype="bf16")
    row("_grouped_mm", "bf16.{32}{16} bf16.{4}{16}{64} i32.{4}<9")
    row("_grouped_mm", "bf16.{4}{32}{16} bf16.{4}{16}{64}")


def reductions(row):
    for name in ("sum", "nansum", "prod", "mean", "amax", "amin", "max", "min"):
        row(name, "ab")
        row(name, "abc")
    for name in ("sum.dim_IntList", "mean.dim", "amax", "amin", "var.correction", "std.correction"):
        row(name, "ab", dim=[0])
        row(name, "ab", dim=[-1], keepdim=True)
        row(name, "abc", dim=[0, 2])
        row(name, "abc", dim=[1])
    row("sum.dim_IntList", "ab", dim=[0], dtype="f64")
    row("sum.dim_IntList", "i64.ab<64", dim=[0])
    row("sum", "b8.ab")
    row("mean.dim", "bf16.ab", dim=[1])
    row("sum", ".")
    row("nansum", "ab", dim=[1])
    row("prod.dim_int", "ab", dim=0)
    row("prod.dim_int", "abc", dim=-1, keepdim=True)
    for name in ("max.dim", "min.dim", "median.dim", "mode", "argmax", "argmin"):
        row(name, "ab", dim=0)
        row(name, "abc", dim=-1, keepdim=True)
    row("nanmedian.dim", "ab", dim=1)
    row("kthvalue", "ab", k=1, dim=0)
    for name in ("median", "argmax", "argmin", "all", "any", "var.correction", "std.correction"):
        row(name, "ab")
    row("var.correction", "ab", dim=[1], correction=0)
    row("var_mean.correction", "ab", dim=[1], keepdim=True)
    row("var_mean.correction", "abc", dim=[0])
    for name in ("any.dim", "all.dim"):
        row(name, "ab", dim=0)
        row(name, "b8.ab", dim=1, keepdim=True)
    row("any.dims", "abc", dim=[0, 1])
    row("logsumexp", "ab", dim=[0])
    row("logsumexp", "abc", dim=[1, 2], keepdim=True)
    for order in (2, 1, 3.5, 0, "inf", "-inf"):
        row("linalg_vector_norm", "ab", ord=order)
        row("linalg_vector_norm", "abc", ord=order, dim=[1], keepdim=True)
    row("linalg_vector_norm", "ab", dim=[0])
    row("linalg_vector_norm", "ab", dtype="f64")
    row("norm.Scalar", "ab", p=2)
    row("norm.Scalar", "ab", p=1)
    row("linalg__powsum", "ab", ord=2)
    for name in ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"):
        row(name, "ab", dim=0)
        row(name, "abc", dim=-1)
    row("cumsum_", "ab", dim=1)
    row("sum.IntList_out", "ab b", dim=[0])
    row("mean.out", "ab a", dim=[1])
    row("amax.out", "ab a", dim=[1])
    row("histc", "ab", bins=4, min=0, max=1)


def norms(row):
    for name in ("_softmax", "_log_softmax"):
        row(name, "ab", dim=-1, half_to_float=False)
        row(name, "abc", dim=0, half_to_float=False)
        row(name, "abcd", dim=-1, half_to_float=False)
    row("_safe_softmax", "abc", dim=2)
    for name in ("_softmax_backward_data", "_log_softmax_backward_data"):
        row(name, "ab ab", dim=-1, input_dtype="f32")
        row(name, "abc abc", dim=1, input_dtype="f32")
        row(name, "abcd abcd", dim=-1, input_dtype="f32")
    row("_softmax.out", "ab ab", dim=1, half_to_float=False)
    last = {"normalized_shape": lambda z: [z.c], "eps": 1e-5}
    two = {"normalized_shape": lambda z: [z.b, z.c], "eps": 1e-5}
    for inputs in ("abc c c", "abc c -", "abc - -"):
        row("native_layer_norm", inputs, **last)
    row("native_layer_norm", "ac c c", **last)
    row("native_layer_norm", "abc bc bc", **two)
    row("_fused_rms_norm", "abc c", **last)
    row("_fused_rms_norm", "ac c", **last)
    row("_fused_rms_norm", "abc -", **last)
    row("_fused_rms_norm", "abc bc", **two)
    shape = {"normalized_shape": lambda z: [z.c]}
    every = {**shape, "output_mask": [True, True, True]}
    row("native_layer_norm_backward", "abc abc ab1 ab1 c c", **every)
    row("native_layer_norm_backward", "ac ac a1 a1 c c", **every)
    row("native_layer_norm_backward", "ac ac a1 a1 c c", **shape, output_mask=[True, False, True])
    row("native_layer_norm_backward", "ac ac a1 a1 - -", **shape, output_mask=[True, False, False])
    row("native_layer_norm_backward", "ac ac a1 a1 c -", **shape, output_mask=[False, True, False])
    row("_fused_rms_norm_backward", "abc abc ab1 c", **shape, output_mask=[True, True])
    row("_fused_rms_norm_backward", "ac ac a1 c", **shape, output_mask=[True, True])
    row("_fused_rms_norm_backward", "ac ac a1 -", **shape, output_mask=[True, False])
    group = {"N": lambda z: z.n, "C": 8, "HxW": 36, "group": 2, "eps": 1e-5}
    row("native_group_norm", "n{8}{6}{6} {8} {8}", **group)
    row("native_group_norm", "n{8}{36} - -", **group)


def embeddings(row):
    for inputs in ("ve i64.ab<v", "ve i64.a<v", "ve i32.abc<v"):
        row("embedding", inputs)
    row("embedding", "ve i64.ab<v", padding_idx=0)
    back = {"num_weights": lambda z: z.v, "padding_idx": -1, "scale_grad_by_freq": False}
    row("embedding_dense_backward", "abe i64.ab<v", **back)
    row("embedding_dense_backward", "ae i64.a<v", **back)
    back["scale_grad_by_freq"] = True
    row("embedding_dense_backward", "abe i64.ab<v", **back)


def attention(row):
    qkv, dtype = "nhsd nhtd nhtd", "bf16."
    qkv = " ".join(dtype + t for t in qkv.split())
    flash, efficient = (
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_efficient_attention",
    )
    row(flash, qkv, dropout_p=0.0, is_causal=True)
    row(flash, qkv, dropout_p=0.0, is_causal=False, return_debug_mask=True, scale=0.25)
    row(efficient, qkv + " -", compute_log_sumexp=True)
    row(efficient, qkv + " bf16.nhst", compute_log_sumexp=True, is_causal=False)
    row(efficient, qkv + " bf16.1hst", compute_log_sumexp=False)
    row("_scaled_dot_product_cudnn_attention", qkv + " -", compute_log_sumexp=True)
    same, stats = "bf16.nhsd", "f32.nhs"
    row(
        flash + "_backward",
        f"{same} {qkv} {same} {stats} - - u64.{{2}} u64.",
        max_q=lambda z: z.s,
        max_k=lambda z: z.t,
        dropout_p=0.0,
        is_causal=True,
    )
    for bias, wanted in (("-", False), ("bf16.nhst", True)):
        row(
            efficient + "_backward",
            f"{same} {qkv} {bias} {same} {stats} i64. i64.",
            dropout_p=0.0,
            grad_input_mask=[True, True, True, wanted],
        )


def losses(row):
    for reduction in (0, 1, 2):
        options = {"reduction": reduction, "ignore_index": -100}
        row("nll_loss_forward", "nc i64.n<c -", **options)
        row("nll_loss_forward", "nc i64.n<c c", **options)
        row("nll_loss2d_forward", "ncab i64.nab<c -", **options)
        grad = "n" if reduction == 0 else "."
        row("nll_loss_backward", f"{grad} nc i64.n<c - .", **options)
        row("nll_loss_backward", f"{grad} nc i64.n<c c .", **options)
        grad = "nab" if reduction == 0 else "."
        row("nll_loss2d_backward", f"{grad} ncab i64.nab<c - .", **options)
    row("nll_loss_forward", "nc i64.n<c -", reduction=2, ignore_index=1)


def creation(row):
    for name in ("empty_like", "zeros_like", "ones_like", "rand_like", "randn_like"):
        row(name, "ab")
    row("zeros_like", "ab", dtype="f64")
    row("full_like", "ab", fill_value=2.0)
    row("randint_like", "ab", high=9)
    for name in ("new_empty", "new_zeros", "new_ones"):
        row(name, "ab", size=lambda z: [z.a, z.b])
        row(name, "ab", size=lambda z: [z.b, z.a])
    row("new_full", "ab", size=lambda z: [z.a, z.b], fill_value=2.0)
    row("new_zeros", "ab", size=[], dtype="f64")
    row("new_empty_strided", "ab", size=lambda z: [z.a, z.b], stride=lambda z: [z.b, 1])
    row("native_dropout", "ab", p=0.5, train=True)
    row("native_dropout", "abc", p=0.5, train=True)
    row("bernoulli", "ab")
    row("bernoulli_.float", "ab", p=0.5)
    row("uniform_", "ab")
    row("normal_", "ab")
    row("exponential_", "ab")
    row("multinomial", "ab", num_samples=2, replacement=True)
    row("equal", "ab ab")
    row("_local_scalar_dense", ".")


def convolutions(row):
    plain = {"transposed": False, "output_padding": [0, 0], "dilation": [1, 1], "groups": 1}
    cut = {**plain, "stride": [4, 4], "padding": [0, 0]}
    around = {**plain, "stride": [1, 1], "padding": [1, 1]}
    mask = {"output_mask": [True, True, True], "bias_sizes": [8]}
    row("convolution", "n{4}{16}{16} {8}{4}{3}{3} {8}", **around)
    row("convolution", "n{4}{16}{16} {8}{4}{3}{3} -", **around)
    row("convolution", "n{4}{16}{16} {8}{4}{4}{4} {8}", **cut)
    row("convolution_backward", "n{8}{16}{16} n{4}{16}{16} {8}{4}{3}{3}", **around, **mask)
    row("convolution_backward", "n{8}{4}{4} n{4}{16}{16} {8}{4}{4}{4}", **cut, **mask)


def every(row):
    for part in (pointwise, matmuls, reductions, norms, embeddings, attention, losses, creation):
        part(row)
    for part in (convolutions, moving):
        part(row)
