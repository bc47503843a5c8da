# SPDX-License-Identifier: BSD-3-Clause
"""Rarer operators as rows; operator_calls.py says what a row is. DTensor has no rules for those in
DECOMPOSED, among them complex numbers, and follows them through their decompositions. It carries
out those in the lists from CARRIED on step by step; networks, arrays, matrices and means reach
dispatch in inference mode only."""


def pooling(row):
    row("avg_pool1d: ac{8} kernel_size=[2]",
        "avg_pool2d: ac{8}{8} kernel_size=[3,2] stride=[2,2] padding=[1,0]",
        "avg_pool2d: c{8}{6} kernel_size=[2,2] ceil_mode=True divisor_override=3",
        "avg_pool3d: ac{4}{4}{4} kernel_size=[2,2,2] count_include_pad=False",
        "adaptive_avg_pool1d: ac{8} output_size=[3]",
        "_adaptive_avg_pool2d: ac{8}{6} output_size=[3,2]",
        "_adaptive_avg_pool2d_backward: ac{3}{2} ac{8}{6}",
        "adaptive_max_pool2d: ac{8}{6} output_size=[3,2]",
        "max_pool2d_with_indices: ac{8}{8} kernel_size=[3,2] stride=[2,2] padding=[1,0]",
        "max_pool2d_with_indices: c{8}{8} kernel_size=[2,2] ceil_mode=True")
    row("max_pool2d_with_indices_backward", "ac{4}{4} ac{8}{8} i64.ac{4}{4}<64", kernel_size=[2, 2],
        stride=[2, 2], padding=[0, 0], dilation=[1, 1], ceil_mode=False)
    row("max_unpool2d", "ac{4}{4} i64.ac{4}{4}<64", output_size=[8, 8])


def resampling(row):
    for name in ("upsample_nearest2d", "_upsample_nearest_exact2d"):
        row(name, "ac{4}{6}", output_size=[8, 9])
        row(name + "_backward", "ac{8}{9}", output_size=[8, 9], input_size="[a,c,4,6]")
    for name in ("upsample_bilinear2d", "upsample_bicubic2d"):
        row(name, "ac{4}{6}", output_size=[8, 9], align_corners=False)
        row(name, "ac{4}{6}", output_size=[8, 9], align_corners=True)
        row(name + "_backward", "ac{8}{9}", output_size=[8, 9], input_size="[a,c,4,6]",
            align_corners=False)
    row("upsample_nearest1d", "ac{4}", output_size=[8])
    row("upsample_linear1d", "ac{4}", output_size=[8], align_corners=False)
    row("upsample_trilinear3d", "ac{2}{3}{4}", output_size=[4, 6, 8], align_corners=False)


def batch_norms(row):
    learns = {"training": True, "momentum": 0.1, "eps": 1e-5}
    row("native_batch_norm", "ac{4} c c c c", "ac c c - -", **learns)
    row("native_batch_norm", "ac{4}{4} - - c c", **{**learns, "training": False})
    row("_native_batch_norm_legit", "ac{4}{4} c c c c", **learns)
    row("_native_batch_norm_legit.no_stats", "ac{4} c c", **learns)
    row("_native_batch_norm_legit_no_training", "ac{4} c c c c", momentum=0.1, eps=1e-5)
    row("native_batch_norm_backward",
        "ac{4} ac{4} c c c c c train=True eps=1e-5 output_mask=[True,True,True]",
        "ac{4} ac{4} c c c c c train=False eps=1e-5 output_mask=[True,False,True]")


def linear_algebra(row):
    row("linalg_matrix_exp linalg_inv_ex linalg_cholesky_ex cholesky_inverse _linalg_det "
        "_linalg_slogdet linalg_lu_factor_ex _linalg_eigh", "a{4}{4}")
    row("_linalg_svd: a{4}{3}", "linalg_qr: a{3}{4} mode=complete",
        "_linalg_solve_ex: a{4}{4} a{4}c", "linalg_solve_triangular: a{4}{4} a{4}c upper=True",
        "cholesky_solve: a{4}c a{4}{4}", "linalg_lu_solve: a{4}{4} i32.a{4}<5 a{4}c",
        "linalg_cross: a{3}b a{3}b dim=1")


def others(row):
    row("special_hermite_polynomial_h: ab b", "special_laguerre_polynomial_l.n_scalar: ab n=2",
        "special_chebyshev_polynomial_t.x_scalar: ab x=0.5", "frexp.Tensor: ab",
        "diagonal_scatter: {4}b{4} b{4} dim1=0 dim2=2 | aac ca", "_foreach_clone: [ab b]",
        "_foreach_mm: [mk kn] [kn nm]")


def losses(row):
    for name, more in (("mse_loss", {}), ("smooth_l1_loss", {"beta": 0.5}),
                       ("huber_loss", {"delta": 0.5}), ("soft_margin_loss", {})):
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
        row("binary_cross_entropy_with_logits", "ab ab - -", "a a a -", "ab ab - b",
            reduction=reduction)


def elementwise(row):
    row("log_sigmoid_forward: ab", "log_sigmoid_backward: ab ab ab",
        "floor_divide: ab ab | i64.ab<64 b", "floor_divide.Scalar: i64.ab<64 other=2",
        "floor_divide_.Tensor: ab ab", "rsub.Tensor: ab ab | ab b alpha=2.0",
        "_prelu_kernel: ab b | abc 1b1", "_prelu_kernel_backward: ab ab b | abc abc 1b1")
    row("rrelu_with_noise_backward", "ab ab ab", lower=0.1, upper=0.3, training=True,
        self_is_result=False)
    row("masked_fill.Tensor: ab b8.ab .", "glu: ab dim=-1 | abc dim=1",
        "glu_backward: ae a{16} dim=1", "isin.Tensor_Tensor: i64.ab<64 i64.{3}<64",
        "isin.Tensor_Scalar: i64.ab<64 test_element=3", "bucketize.Scalar: a self=0.5")


def reductions(row):
    row("count_nonzero: ab", "count_nonzero.dim_IntList: ab dim=[0] | abc dim=[0,2]",
        "aminmax: ab | ab dim=0 | abc dim=-1 keepdim=True")
    for p in (2, 1, 0, "inf", None):
        row("norm.ScalarOpt_dim", f"ab p={p} dim=[1]", f"abc p={p} dim=[0] keepdim=True")
    row("norm.ScalarOpt_dim_dtype: ab p=2 dim=[0] keepdim=False dtype=f64",
        "norm.ScalarOpt_dtype: ab p=2 dtype=f64",
        "std_mean.correction: ab dim=[1] | abc dim=[0] keepdim=True | ab", "dist: ab ab p=2",
        "trace: ab", "vdot: a a", "renorm: ab p=2 dim=0 maxnorm=1.0", "_euclidean_dist: ab cb")


def products(row):
    row("mv: mk k", "addr: ab a b | b a b beta=2.0 alpha=0.5 | ab a b beta=0.0", "addmv: m mk k",
        "_addmm_activation: n mk kn", "linear_backward: amn ak mk output_mask=[True,True,True]")


def moving(row):
    row("take", "ab i64.c<a", "ab i64.cd<a")
    row("rot90", *(f"ab k={k} dims=[0,1]" for k in range(4)), "abc k=1 dims=[1,2]")
    row("pixel_shuffle: n{8}{3}{4} upscale_factor=2",
        "pixel_unshuffle: n{3}{4}{8} downscale_factor=2", "channel_shuffle: n{8}{3}{4} groups=2",
        "index_add: ab i64.c<a cb dim=0 | ab i64.c<b ac dim=1 alpha=2.0",
        "index_add_ index_copy: ab i64.c<a cb dim=0",
        "diagonal_backward: a input_sizes=[a,a] offset=0 dim1=0 dim2=1",
        "unfold: ab dimension=0 size=1 step=1 | ab dimension=1 size=1 step=1",
        "narrow_copy: ab dim=0 start=0 length=1", "block_diag: [ab cd]",
        "unbind_copy.int: ab dim=0 | ab dim=1", "reflection_pad1d: ab padding=[0,0]",
        "reflection_pad2d replication_pad2d: nc{6}{6} padding=[1,1,1,1]")
    window = {"kernel_size": [2, 2], "dilation": [1, 1], "padding": [0, 0], "stride": [2, 2]}
    row("im2col", "nc{6}{6}", **window)
    row("col2im", "n{12}{9}", output_size=[6, 6], **window)
    row("affine_grid_generator", "n{2}{3}", size="[n,3,4,4]", align_corners=False)
    sampler = {"interpolation_mode": 0, "padding_mode": 0, "align_corners": False}
    row("grid_sampler_2d", "nc{6}{6} n{4}{4}{2}", **sampler)
    row("grid_sampler_2d_backward", "nc{4}{4} nc{6}{6} n{4}{4}{2}", **sampler,
        output_mask=[True, True])
    row("scatter_reduce_.two", "ab i64.ab<a ab", dim=0, reduce="sum")
    row("native_group_norm_backward", "n{8}{9} n{8}{9} n{2} n{2} {8}", N="n", C=8, HxW=9, group=2,
        output_mask=[True, True, True])
    row("_weight_norm_interface: ab a1 dim=0", "histc: i64.ab<8 bins=4 min=0 max=8")


def complex_numbers(row):
    row("view_as_real: c64.ab", "view_as_complex: ab{2}", "polar: ab ab", "complex: ab ab | ab b",
        "mul.Tensor: c64.ab c64.b | c64.ab ab", "add.Tensor div.Tensor: c64.ab c64.ab",
        "_conj conj_physical abs angle neg exp reciprocal sum view_as_real_copy: c64.ab",
        "mm: c64.mk c64.kn")
    for dim in ([0], [1]):
        row("_fft_c2c", "c64.ab", dim=dim, normalization=0, forward=True)
        row("_fft_r2c", "ab", dim=dim, normalization=0, onesided=True)
        row("_fft_c2r", "c64.ab", dim=dim, normalization=2, last_dim_size=8)
    row("_fft_c2c", "c64.abc", dim=[1, 2], normalization=1, forward=False)
    row("_fft_r2c", "abc", dim=[1, 2], normalization=0, onesided=False)


def layouts(row):
    row("lift lift_fresh alias_copy zero", "ab", "i64.abc<9")
    row("fill.Scalar", "ab value=2.0", "abc value=0.0")
    row("diagonal_backward", "a input_sizes=[a,a] offset=0 dim1=0 dim2=1",
        "ba input_sizes=[a,b,a] offset=0 dim1=0 dim2=2")
    row("all.dims: ab dim=[0] | abc dim=[0,2] keepdim=True | b8.abc dim=[1]",
        "_euclidean_dist: ab cb | dab dcb", "_weight_norm_interface: ab a1 dim=0 | abc 11c dim=2")


def networks(row):
    row("layer_norm", "abc c c", normalized_shape="[c]")
    row("rms_norm", "abc c", "bf16.abc bf16.c", normalized_shape="[c]", eps=1e-5)
    row("dropout: ab p=0.5 train=False", "max_pool2d: nc{8}{8} kernel_size=[2,2]",
        "max_pool3d: nc{4}{4}{4} kernel_size=[2,2,2]",
        "adaptive_avg_pool2d: nc{8}{8} output_size=[4,4]",
        "adaptive_avg_pool3d: nc{4}{4}{4} output_size=[2,2,2]", "conv1d: n{4}{16} {8}{4}{3} {8}",
        "conv2d: n{4}{8}{8} {8}{4}{3}{3} {8} padding=[1,1]",
        "conv3d: n{4}{4}{4}{4} {8}{4}{3}{3}{3} {8}",
        "conv_transpose1d: n{4}{8} {4}{8}{2} {8} stride=[2]",
        "conv_transpose2d.input: n{4}{8}{8} {4}{8}{2}{2} {8} stride=[2,2]",
        "_weight_norm: ab a1 dim=0", "l1_loss kl_div: ab ab reduction=0",
        "l1_loss kl_div: ab ab reduction=2", "kl_div: ab ab reduction=2 log_target=True",
        "pairwise_distance: ab ab | ab ab p=1.0 eps=0.1 keepdim=True")


def arrays(row):
    row("special_ndtr: ab", "nanmean: ab dim=[1] | ab",
        "var.dim std.dim var_mean.dim: ab dim=[0] | abc dim=[1] unbiased=False keepdim=True",
        "argsort: ab dim=1", "argsort.stable: ab stable=True dim=0 descending=True", "msort: ab",
        "outer: a b", "diff: ab | ab n=2 dim=0", "repeat_interleave.self_int: ab repeats=2 dim=0",
        "split.sizes: n{8} split_size=[3,5] dim=1", "unsafe_chunk: ab chunks=2 dim=1",
        "flipud fliplr resolve_conj data: ab")


def matrices(row):
    row("linalg_det linalg_slogdet linalg_eigh linalg_svd linalg_svdvals: b{4}{4}",
        "linalg_svd: b{4}{3} full_matrices=False", "matrix_exp: b{4}{4}",
        "lu_solve: b{4}{4} b{4}{4} i32.b{4}")


def vendors_batch_norms(row):
    """PyTorch tries all placements of so many tensors, which takes minutes for some."""
    options = {"exponential_average_factor": 0.1, "epsilon": 1e-5}
    for name in ("cudnn_batch_norm", "miopen_batch_norm"):
        row(name, "nc{4}{4} c - - -", training=True, **options)
        row(name, "nc c c c c", training=False, **options)
    row("miopen_batch_norm_backward", "nc nc c - - c c", epsilon=1e-5)
    row("cudnn_batch_norm_backward", "nc nc c - - c c u8.{0}", epsilon=1e-5)


def means(row):
    """PyTorch takes them wrongly over uneven shards."""
    row("l1_loss", "ab ab", reduction=1)
    row("kl_div", "ab ab reduction=1", "ab ab reduction=1 log_target=True")
    row("adaptive_avg_pool2d", "nc{8}{8}", output_size=[1, 1])


def outs(row):
    row("mse_loss.out smooth_l1_loss.out huber_loss.out soft_margin_loss.out",
        "ab ab . reduction=2", "ab ab ab reduction=0")
    row("mse_loss_backward.grad_input: ab ab ab ab reduction=0",
        "binary_cross_entropy.out: ab ab - . reduction=1",
        "binary_cross_entropy_with_logits.out: ab ab - - ab reduction=0",
        "log_sigmoid_forward.output: ab ab ab", "floor_divide.out: ab b ab",
        "floor_divide.Scalar_out: ab ab other=2", "rsub.Tensor_out: ab ab ab",
        "count_nonzero.out: ab i64.", "count_nonzero.dim_IntList_out: ab i64.b dim=[0]",
        "all.dims_out: ab b8.b dim=[0]", "aminmax.out: ab b b dim=0", "norm.out: ab a p=2 dim=[1]",
        "norm.dtype_out: ab f64.a p=2 dim=[1] keepdim=False dtype=f64",
        "std_mean.correction_out: ab a a dim=[1]", "dist.out: ab ab .", "trace.out: ab .",
        "vdot.out: a a .", "addr.out: ab a b ab", "addmv.out: m mk k m", "polar.out: ab ab c64.ab",
        "take.out: ab i64.c<a c", "pixel_shuffle.out: n{8}{3}{4} n{2}{6}{8} upscale_factor=2",
        "pixel_unshuffle.out: n{3}{4}{8} n{12}{2}{4} downscale_factor=2",
        "channel_shuffle.out: n{8}{3}{4} n{8}{3}{4} groups=2",
        "narrow_copy.out: ab {1}b dim=0 start=0 length=1",
        "isin.Tensor_Tensor_out: i64.ab<64 i64.{3}<64 b8.ab",
        "isin.Tensor_Scalar_out: i64.ab<64 b8.ab test_element=3",
        "alias_copy.out hardswish.out: ab ab")


IMAGES = [pooling, resampling, batch_norms, linear_algebra, others]
DECOMPOSED = [losses, elementwise, reductions, products, moving, complex_numbers]
CARRIED = [layouts, networks, arrays, matrices]
BATCH_NORMS, MEANS, OUTS = [vendors_batch_norms], [means], [outs]
