# SPDX-License-Identifier: BSD-3-Clause
"""Operators that PyTorch's DTensor has no rows for and follows through their decompositions, and
those of complex numbers: what row() of common_rows takes."""

LOSSES = "mse_loss smooth_l1_loss huber_loss soft_margin_loss"
OPTIONS = {"smooth_l1_loss": {"beta": 0.5}, "huber_loss": {"delta": 0.5}}


def losses(row):
    for name in LOSSES.split():
        more = OPTIONS.get(name, {})
        for reduction in (1, 0, 2):
            row(name, "ab ab", reduction=reduction, **more)
            grad = "ab" if reduction == 0 else "."
            row(f"{name}_backward", f"{grad} ab ab", reduction=reduction, **more)
        row(name, "abc abc", reduction=1, **more)
        row(f"{name}_backward", ". abc abc", reduction=1, **more)
    row("mse_loss", "ab b", reduction=2)
    for reduction in (1, 0, 2):
        grad = "ab" if reduction == 0 else "."
        for weight in ("-", "ab", "b"):
            row("binary_cross_entropy", f"ab ab {weight}", reduction=reduction)
            row("binary_cross_entropy_backward", f"{grad} ab ab {weight}", reduction=reduction)
        row("binary_cross_entropy_with_logits", "ab ab - -", reduction=reduction)
        row("binary_cross_entropy_with_logits", "a a b -".replace("b", "a"), reduction=reduction)
        row("binary_cross_entropy_with_logits", "ab ab - b", reduction=reduction)


def elementwise(row):
    row("log_sigmoid_forward", "ab")
    row("log_sigmoid_backward", "ab ab ab")
    row("floor_divide", "ab ab")
    row("floor_divide", "i64.ab<64 b")
    row("floor_divide.Scalar", "i64.ab<64", other=2)
    row("floor_divide_.Tensor", "ab ab")
    row("rsub.Tensor", "ab ab")
    row("rsub.Tensor", "ab b", alpha=2.0)
    row("_prelu_kernel", "ab b")
    row("_prelu_kernel", "abc 1b1")
    row("_prelu_kernel_backward", "ab ab b")
    row("_prelu_kernel_backward", "abc abc 1b1")
    row("rrelu_with_noise_backward", "ab ab ab", lower=0.1, upper=0.3, training=True,
        self_is_result=False)
    row("masked_fill.Tensor", "ab b8.ab .")
    row("glu", "ab", dim=-1)
    row("glu", "abc", dim=1)
    row("glu_backward", "ae a(ce)".replace("(ce)", "{16}"), dim=1)
    row("isin.Tensor_Tensor", "i64.ab<64 i64.{3}<64")
    row("isin.Tensor_Scalar", "i64.ab<64", test_element=3)
    row("bucketize.Scalar", "a", self=0.5)


def reductions(row):
    row("count_nonzero", "ab")
    row("count_nonzero.dim_IntList", "ab", dim=[0])
    row("count_nonzero.dim_IntList", "abc", dim=[0, 2])
    row("aminmax", "ab")
    row("aminmax", "ab", dim=0)
    row("aminmax", "abc", dim=-1, keepdim=True)
    for p in (2, 1, 0, "inf", None):
        row("norm.ScalarOpt_dim", "ab", p=p, dim=[1])
        row("norm.ScalarOpt_dim", "abc", p=p, dim=[0], keepdim=True)
    row("norm.ScalarOpt_dim_dtype", "ab", p=2, dim=[0], keepdim=False, dtype="f64")
    row("norm.ScalarOpt_dtype", "ab", p=2, dtype="f64")
    row("std_mean.correction", "ab", dim=[1])
    row("std_mean.correction", "abc", dim=[0], keepdim=True)
    row("std_mean.correction", "ab")
    row("dist", "ab ab", p=2)
    row("trace", "ab")
    row("vdot", "a a")
    row("renorm", "ab", p=2, dim=0, maxnorm=1.0)
    row("_euclidean_dist", "ab cb")


def products(row):
    row("mv", "mk k")
    row("addr", "ab a b")
    row("addr", "b a b", beta=2.0, alpha=0.5)
    row("addr", "ab a b", beta=0.0)
    row("addmv", "m mk k")
    row("_addmm_activation", "n mk kn")
    row("linear_backward", "amn ak mk", output_mask=[True, True, True])


def moving(row):
    row("take", "ab i64.c<a")
    row("take", "ab i64.cd<a")
    for k in (0, 1, 2, 3):
        row("rot90", "ab", k=k, dims=[0, 1])
    row("rot90", "abc", k=1, dims=[1, 2])
    row("pixel_shuffle", "n{8}{3}{4}", upscale_factor=2)
    row("pixel_unshuffle", "n{3}{4}{8}", downscale_factor=2)
    row("channel_shuffle", "n{8}{3}{4}", groups=2)
    row("index_add", "ab i64.c<a cb", dim=0)
    row("index_add", "ab i64.c<b ac", dim=1, alpha=2.0)
    row("index_add_", "ab i64.c<a cb", dim=0)
    row("index_copy", "ab i64.c<a cb", dim=0)
    row("diagonal_backward", "a", input_sizes=lambda z: [z.a, z.a], offset=0, dim1=0, dim2=1)
    row("unfold", "ab", dimension=0, size=1, step=1)
    row("unfold", "ab", dimension=1, size=1, step=1)
    row("narrow_copy", "ab", dim=0, start=0, length=1)
    row("block_diag", "[ab cd]")
    row("unbind_copy.int", "ab", dim=0)
    row("unbind_copy.int", "ab", dim=1)
    row("reflection_pad1d", "ab", padding=[0, 0])
    row("reflection_pad2d", "nc{6}{6}", padding=[1, 1, 1, 1])
    row("replication_pad2d", "nc{6}{6}", padding=[1, 1, 1, 1])
    row("im2col", "nc{6}{6}", kernel_size=[2, 2], dilation=[1, 1], padding=[0, 0], stride=[2, 2])
    row("col2im", "n{12}{9}", output_size=[6, 6], kernel_size=[2, 2], dilation=[1, 1],
        padding=[0, 0], stride=[2, 2])
    row("affine_grid_generator", "n{2}{3}", size=lambda z: [z.n, 3, 4, 4], align_corners=False)
    row("grid_sampler_2d", "nc{6}{6} n{4}{4}{2}", interpolation_mode=0, padding_mode=0,
        align_corners=False)
    row("grid_sampler_2d_backward", "nc{4}{4} nc{6}{6} n{4}{4}{2}", interpolation_mode=0,
        padding_mode=0, align_corners=False, output_mask=[True, True])
    row("scatter_reduce_.two", "ab i64.ab<a ab", dim=0, reduce="sum")
    row("native_group_norm_backward", "n{8}{9} n{8}{9} n{2} n{2} {8}", N=lambda z: z.n, C=8,
        HxW=9, group=2, output_mask=[True, True, True])
    row("_weight_norm_interface", "ab a1", dim=0)

    row("histc", "i64.ab<8", bins=4, min=0, max=8)


def complex_numbers(row):
    row("view_as_real", "c64.ab")
    row("view_as_complex", "ab{2}")
    row("polar", "ab ab")
    row("complex", "ab ab")
    row("complex", "ab b")
    row("mul.Tensor", "c64.ab c64.b")
    row("mul.Tensor", "c64.ab ab")
    row("add.Tensor", "c64.ab c64.ab")
    row("div.Tensor", "c64.ab c64.ab")
    for name in ("_conj", "conj_physical", "abs", "angle", "neg", "exp", "reciprocal", "sum"):
        row(name, "c64.ab")
    row("view_as_real_copy", "c64.ab")
    row("mm", "c64.mk c64.kn")
    for dim in ([0], [1]):
        row("_fft_c2c", "c64.ab", dim=dim, normalization=0, forward=True)
        row("_fft_r2c", "ab", dim=dim, normalization=0, onesided=True)
        row("_fft_c2r", "c64.ab", dim=dim, normalization=2, last_dim_size=8)
    row("_fft_c2c", "c64.abc", dim=[1, 2], normalization=1, forward=False)
    row("_fft_r2c", "abc", dim=[1, 2], normalization=0, onesided=False)


def decomposed(row):
    for part in (losses, elementwise, reductions, products, moving, complex_numbers):
        part(row)
