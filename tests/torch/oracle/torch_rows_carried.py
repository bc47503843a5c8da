# SPDX-License-Identifier: BSD-3-Clause
"""Operators that DTensor carries out by their steps, in inference mode alone from `means` on: what
row() of common_rows takes."""


def layouts(row):
    for name in ("lift", "lift_fresh", "alias_copy", "zero"):
        row(name, "ab")
        row(name, "i64.abc<9")
    row("fill.Scalar", "ab", value=2.0)
    row("fill.Scalar", "abc", value=0.0)
    row("diagonal_backward", "a", input_sizes=lambda z: [z.a, z.a], offset=0, dim1=0, dim2=1)
    row(
        "diagonal_backward", "ba", input_sizes=lambda z: [z.a, z.b, z.a], offset=0, dim1=0, dim2=2
    )


def reductions(row):
    row("all.dims", "ab", dim=[0])
    row("all.dims", "abc", dim=[0, 2], keepdim=True)
    row("all.dims", "b8.abc", dim=[1])
    row("_euclidean_dist", "ab cb")
    row("_euclidean_dist", "dab dcb")
    row("_weight_norm_interface", "ab a1", dim=0)
    row("_weight_norm_interface", "abc 11c", dim=2)


def batch_norms(row):
    """PyTorch tries all ways of so many tensors: some take it minutes."""
    options = {"exponential_average_factor": 0.1, "epsilon": 1e-5}
    for name in ("cudnn_batch_norm", "miopen_batch_norm"):
        row(name, "nc{4}{4} c - - -", training=True, **options)
        row(name, "nc c c c c", training=False, **options)
    row("miopen_batch_norm_backward", "nc nc c - - c c", epsilon=1e-5)
    row("cudnn_batch_norm_backward", "nc nc c - - c c u8.{0}", epsilon=1e-5)


def outs(row):
    for name in ("mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss"):
        row(name + ".out", "ab ab .", reduction=2)
        row(name + ".out", "ab ab ab", reduction=0)
    row("mse_loss_backward.grad_input", "ab ab ab ab", reduction=0)
    row("binary_cross_entropy.out", "ab ab - .", reduction=1)
    row("binary_cross_entropy_with_logits.out", "ab ab - - ab", reduction=0)
    row("log_sigmoid_forward.output", "ab ab ab")
    row("floor_divide.out", "ab b ab")
    row("floor_divide.Scalar_out", "ab ab", other=2)
    row("rsub.Tensor_out", "ab ab ab")
    row("count_nonzero.out", "ab i64.")
    row("count_nonzero.dim_IntList_out", "ab i64.b", dim=[0])
    row("all.dims_out", "ab b8.b", dim=[0])
    row("aminmax.out", "ab b b", dim=0)
    row("norm.out", "ab a", p=2, dim=[1])
    row("norm.dtype_out", "ab f64.a", p=2, dim=[1], keepdim=False, dtype="f64")
    row("std_mean.correction_out", "ab a a", dim=[1])
    row("dist.out", "ab ab .")
    row("trace.out", "ab .")
    row("vdot.out", "a a .")
    row("addr.out", "ab a b ab")
    row("addmv.out", "m mk k m")
    row("polar.out", "ab ab c64.ab")
    row("take.out", "ab i64.c<a c")
    row("pixel_shuffle.out", "n{8}{3}{4} n{2}{6}{8}", upscale_factor=2)
    row("pixel_unshuffle.out", "n{3}{4}{8} n{12}{2}{4}", downscale_factor=2)
    row("channel_shuffle.out", "n{8}{3}{4} n{8}{3}{4}", groups=2)
    row("narrow_copy.out", "ab {1}b", dim=0, start=0, length=1)
    row("isin.Tensor_Tensor_out", "i64.ab<64 i64.{3}<64 b8.ab")
    row("isin.Tensor_Scalar_out", "i64.ab<64 b8.ab", test_element=3)
    row("alias_copy.out", "ab ab")
    row("hardswish.out", "ab ab")


def means(row):
    """Over uneven shards PyTorch takes them wrongly."""
    row("l1_loss", "ab ab", reduction=1)
    row("kl_div", "ab ab", reduction=1)
    row("kl_div", "ab ab", reduction=1, log_target=True)
    row("adaptive_avg_pool2d", "nc{8}{8}", output_size=[1, 1])


def networks(row):
    row("layer_norm", "abc c c", normalized_shape=lambda z: [z.c])
    row("rms_norm", "abc c", normalized_shape=lambda z: [z.c], eps=1e-5)
    row("rms_norm", "bf16.abc bf16.c", normalized_shape=lambda z: [z.c], eps=1e-5)
    row("dropout", "ab", p=0.5, train=False)
    row("max_pool2d", "nc{8}{8}", kernel_size=[2, 2])
    row("max_pool3d", "nc{4}{4}{4}", kernel_size=[2, 2, 2])
    row("adaptive_avg_pool2d", "nc{8}{8}", output_size=[4, 4])
    row("adaptive_avg_pool3d", "nc{4}{4}{4}", output_size=[2, 2, 2])
    row("conv1d", "n{4}{16} {8}{4}{3} {8}")
    row("conv2d", "n{4}{8}{8} {8}{4}{3}{3} {8}", padding=[1, 1])
    row("conv3d", "n{4}{4}{4}{4} {8}{4}{3}{3}{3} {8}")
    row("conv_transpose1d", "n{4}{8} {4}{8}{2} {8}", stride=[2])
    row("conv_transpose2d.input", "n{4}{8}{8} {4}{8}{2}{2} {8}", stride=[2, 2])
    row("_weight_norm", "ab a1", dim=0)
    for reduction in (0, 2):
        row("l1_loss", "ab ab", reduction=reduction)
        row("kl_div", "ab ab", reduction=reduction)
    row("kl_div", "ab ab", reduction=2, log_target=True)
    row("pairwise_distance", "ab ab")
    row("pairwise_distance", "ab ab", p=1.0, eps=0.1, keepdim=True)


def arrays(row):
    row("special_ndtr", "ab")
    row("nanmean", "ab", dim=[1])
    row("nanmean", "ab")
    for name in ("var.dim", "std.dim", "var_mean.dim"):
        row(name, "ab", dim=[0])
        row(name, "abc", dim=[1], unbiased=False, keepdim=True)
    row("argsort", "ab", dim=1)
    row("argsort.stable", "ab", stable=True, dim=0, descending=True)
    row("msort", "ab")
    row("outer", "a b")
    row("diff", "ab")
    row("diff", "ab", n=2, dim=0)
    row("repeat_interleave.self_int", "ab", repeats=2, dim=0)
    row("split.sizes", "n{8}", split_size=[3, 5], dim=1)
    row("unsafe_chunk", "ab", chunks=2, dim=1)
    row("flipud", "ab")
    row("fliplr", "ab")
    row("resolve_conj", "ab")
    row("data", "ab")


def matrices(row):
    for name in ("linalg_det", "linalg_slogdet", "linalg_eigh", "linalg_svd", "linalg_svdvals"):
        row(name, "b{4}{4}")
    row("linalg_svd", "b{4}{3}", full_matrices=False)
    row("matrix_exp", "b{4}{4}")
    row("lu_solve", "b{4}{4} b{4}{4} i32.b{4}")


def carried(row):
    for part in (layouts, reductions, networks, arrays, matrices):
        part(row)
