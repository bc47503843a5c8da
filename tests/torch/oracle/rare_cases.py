# SPDX-License-Identifier: BSD-3-Clause
"""Cases of operators that move elements, work on images, lists and matrices or are rare;
operator_values.py says what a case is."""

import itertools

import torch
from calls import foreach
from operator_values import tensor


def views(case):
    x = tensor("2x3x4")
    case("view", [x], size=[6, -1])
    case("view", "0x3", size=[3, 0])
    case("_unsafe_view", [x], size=[24])
    case("reshape", "i64.2x3", shape=[3, 2])
    case("view_copy", [x], size=[4, 6])
    case("permute", [x], dims=[2, 0, -2])
    case("transpose.int", [x], dim0=0, dim1=-1)
    case("t: 2x3 | 3", "t_: 2x3", "expand: 3x1 size=[2,-1,2]", "squeeze: 1x2x1",
         "squeeze.dim: 1x2x1 dim=-1", "squeeze.dims: 1x2x1 dim=[0,1]", "unsqueeze: 2x3 dim=-1",
         "unflatten.int: 2x6 dim=1 sizes=[2,-1]")
    case("flatten.using_ints", [x], start_dim=1)
    case("flatten.using_ints: .", "repeat: 2x1 repeats=[2,1,3]", "tile: 2x2 dims=[2]")
    case("movedim.intlist", [x], source=[0, -1], destination=[-1, 0])
    case("movedim.int", [x], source=0, destination=2)


def copies(case):
    case("alias: i64.2", "clone: bf16.2", "detach contiguous: 2")
    inputs = [tensor(word) for word in ("6", "6", "6", "i64.3", "b8.3")]
    for x, dtype in zip(inputs, ("i64", "bool", "bf16", "u8", "f32")):
        case("_to_copy", [x], dtype=dtype)
    case("copy_: 2x3 i64.3", "copy: i64.2x3 3", "zero_ zeros_like: 2x3",
         "ones_like: i64.2x3 dtype=f64", "full_like: 2x3 fill_value=1.5", "new_zeros: 2 size=[2,2]",
         "new_ones: 2 size=[]", "new_full: i64.2 size=[3] fill_value=4",
         "fill_.Scalar: 2x3 value=0.5", "fill.Tensor: 2x3 i64.{2}")


def cuts(case):
    case("cat: [2x3 1x3 0] dim=0 | [2x1 i64.2x2] dim=-1", "stack: [2 2] dim=-1",
         "split.Tensor: 5x2 split_size=2", "split_with_sizes: 2x5 split_sizes=[1,4] dim=1",
         "chunk: 5x2 chunks=3", "unbind.int: 2x3 dim=1")
    case("slice.Tensor", "5x2 dim=0 start=1 end=-1 step=2", "5x2 dim=0 start=4 end=2",
         "5x2 dim=1 end=99")
    case("slice_backward: 2x2 input_sizes=[5,2] dim=0 start=1 end=4 step=2",
         "slice_scatter: 5x2 2x2 dim=0 start=1 end=4 step=2", "narrow: 5x2 dim=0 start=1 length=3",
         "select.int: 3x2 dim=0 index=-1", "select_backward: 2 input_sizes=[3,2] dim=0 index=1",
         "select_scatter: 3x2 3 dim=1 index=0", "constant_pad_nd: 2x3 pad=[1,2,-1,1] value=0.5",
         "pad: 2x3 pad=[1,0]", "flip: 2x3x2 dims=[0,-1]",
         "roll: 3x4 shifts=[1,-1] dims=[0,1] | 2x3 shifts=[2]",
         "tril triu: 3x4 diagonal=1 | 2x3x2 diagonal=-1",
         "diagonal: 3x4 offset=1 | 2x3x2 offset=-1 dim1=1 dim2=2", "diagonal_scatter: 3x3 3",
         "diag_embed: 2x2 offset=1 | 2x2 dim1=0 dim2=2", "diag: 3 diagonal=-1 | 3x3 diagonal=1")


def indices(case):
    case("index_select", "4x2 i64.3<4 dim=0", "2x4 i64.<4 dim=-1")
    case("gather", "3x4 i64.2x3<4 dim=1", "3x4 i64.2x3<3 dim=0", ". i64.1<1 dim=0")
    unique = "i64.2x3{0,2,1,3,1,0}"
    case("scatter.src", f"2x4 {unique} 2x3", f"2x4 {unique} 3x4", dim=1)
    case("scatter_.value", f"2x4 {unique}", dim=1, value=1.5)
    case("scatter_add", "2x4 i64.2x5<4 2x5", dim=1)
    case("index.Tensor", "3x4 [i64.2x2>-3<3]", "3x4x2 [- i64.3<4]", "3x4x2 [i64.2<3 - i64.2<2]",
         "3x4x2 [- i64.2x1<4 i64.3<2]")
    case("index_put: 3x4 [i64.2{0,2}] 2x4", "index_put_: 3x4 [i64.3{0,0,2}] 4 accumulate=True",
         "index_put: 3x4 [- i64.2{1,-1}] .", "index_fill.int_Scalar: 3x2 i64.2{0,2} dim=0 value=9",
         "index_add: 3x2 i64.2{0,0} 2x2 dim=0 alpha=2", "index_copy: 3x2 i64.2{2,0} 2x2 dim=0")


def convolutions(case):
    def both_ways(inputs, **more):
        x, w, bias = (tensor(word) for word in inputs.split())
        own = {"stride": [1], "padding": [0], "dilation": [1], "transposed": False,
               "output_padding": [0], "groups": 1, **more}
        for name, value in own.items():
            if isinstance(value, list) and len(value) == 1:
                own[name] = value * (x.dim() - 2)
        case("convolution", [x, w, bias], **own)
        shape = torch.ops.aten.convolution(x, w, None, *own.values()).shape
        case("convolution_backward", ["x".join(map(str, shape)), x, w], **own,
             output_mask=[True, True, True], bias_sizes=[shape[1]])

    both_ways("2x2x5 3x2x3 3")
    both_ways("1x2x4x4 2x2x3x3 -", padding=[1], stride=[2])
    both_ways("1x4x4x3 4x2x2x1 4", groups=2)
    both_ways("1x1x5x5 1x1x2x2 -", dilation=[2], padding=[0, 1])
    both_ways("1x1x2x3x3 2x1x2x2x2 2")
    both_ways("1x2x3 2x1x3 1", transposed=True, stride=[2], padding=[1], output_padding=[1])
    case("conv2d", "1x2x3x3 1x2x2x2 1")


def lists(case):
    foreach(case, "[2x2 3]", "abs neg exp tanh sign: L", "sqrt: [2x2>0.25 3>0.25]", "neg_ zero_: L",
            "add.List: L L alpha=0.5", "add.Scalar: L scalar=1.5",
            "add_.ScalarList: L scalars=[1.5,2]", "add.Tensor: L . alpha=2", "sub.List: L L",
            "mul.Scalar: [bf16.2x2 bf16.3] scalar=0.5", "mul_.Tensor: L .",
            "div.List: L [2x2>0.5 3>0.5]", "div_.ScalarList: L scalars=[2,4]",
            "pow.Scalar: [2x2>0.25 3>0.25] exponent=2", "pow.ScalarAndTensor: L self=2",
            "maximum.List: L L", "clamp_min.Scalar: L scalar=0.5",
            "clamp_max.ScalarList: L scalars=[0.5,-0.5]", "norm.Scalar: L ord=2 | L ord=1",
            "lerp.Scalar: L L weight=0.25", "lerp_.List: L L L", "addcmul.Scalar: L L L value=0.5",
            "addcdiv_.ScalarList: L L [2x2>1 3>1] scalars=[0.5,2]",
            "addcmul.Tensor: L L L 2{0.5,2}", "copy_: L L", "max: L")
    options = {"lr": 0.1, "beta1": 0.5, "beta2": 0.75, "weight_decay": 0.25, "eps": 0.125}
    lists, squares, steps = "[2x2 3] [2x2 3] [2x2 3]", "[2x2>0 3>0]", "[.{3} .{3}]"
    for name in ("_fused_adam_", "_fused_adamw_"):
        for maximizes in (False, True):
            case(name, f"{lists} {squares} [] {steps}", **options, amsgrad=False,
                 maximize=maximizes)
        case(name, f"{lists} {squares} {squares} {steps}", **options, amsgrad=True, maximize=False)


def pooling(case):
    case("avg_pool1d", "2x2x5", kernel_size=[2], stride=[2], ceil_mode=True)
    windows = {"kernel_size": [3, 2], "stride": [2, 1], "padding": [1, 1]}
    case("avg_pool2d", "2x5x4", **windows)
    case("avg_pool2d", "2x5x4", **windows, ceil_mode=True, count_include_pad=False)
    case("avg_pool2d", "1x4x4", kernel_size=[2, 2], divisor_override=3)
    case("avg_pool3d", "1x2x3x2", kernel_size=[2, 2, 2], stride=[1, 1, 1])
    case("adaptive_avg_pool1d", "2x5", output_size=[3])
    case("_adaptive_avg_pool2d", "1x1x5x3", output_size=[2, 2])
    case("_adaptive_avg_pool2d_backward", "1x1x2x2 1x1x5x3")
    case("adaptive_max_pool2d", "1x5x3!", output_size=[2, 2])
    case("max_pool2d_with_indices", "2x5x4!", **windows, dilation=[1, 2])
    case("max_pool2d_with_indices", "1x5x5!", kernel_size=[2, 2], ceil_mode=True)
    x = tensor("1x1x4x4!")
    _, at = torch.ops.aten.max_pool2d_with_indices(x, [2, 2], [1, 1])
    case("max_pool2d_with_indices_backward", ["1x1x3x3", x, at], kernel_size=[2, 2], stride=[1, 1],
         padding=[0, 0], dilation=[1, 1], ceil_mode=False)
    y, at = torch.ops.aten.max_pool2d_with_indices(x, [2, 2], [2, 2])
    case("max_unpool2d", [y, at], output_size=[4, 4])


def resampling(case):
    for name in ("upsample_nearest2d", "_upsample_nearest_exact2d"):
        case(name, "1x1x3x2", output_size=[5, 3])
        case(name + "_backward", "1x1x5x3", output_size=[5, 3], input_size=[1, 1, 3, 2])
    for name in ("upsample_bilinear2d", "upsample_bicubic2d"):
        for corners in (False, True):
            own = {"output_size": [5, 3], "align_corners": corners}
            case(name, "1x1x3x4", **own)
            case(name + "_backward", "1x1x5x3", **own, input_size=[1, 1, 3, 4])
    case("upsample_bilinear2d", "1x1x3x2", output_size=[6, 4], align_corners=False, scales_h=2.0,
         scales_w=2.0)
    case("upsample_nearest1d", "1x2x3", output_size=[7])
    case("upsample_linear1d", "1x2x3", output_size=[7], align_corners=False)
    case("upsample_trilinear3d", "1x1x2x1x2", output_size=[3, 2, 3], align_corners=True)


def batch_norms(case):
    own = {"momentum": 0.1, "eps": 1e-5}
    mean, var = tensor("3"), tensor("3>0.5")
    case("native_batch_norm", ["2x3x2", "3", "3", mean, var], "4x3 - - - -", training=True, **own)
    case("native_batch_norm", ["2x3x2", "3", None, mean, var], training=False, **own)
    case("_native_batch_norm_legit_no_training", ["2x3", "3", "3", mean, var], **own)
    x, w = tensor("2x3x2"), tensor("3")
    _, saved, scale = torch.ops.aten.native_batch_norm(x, w, None, None, None, True, 0.1, 1e-5)
    for train in (True, False):
        case("native_batch_norm_backward", ["2x3x2", x, w, mean, var, saved, scale], train=train,
             eps=1e-5, output_mask=[True, True, True])


def linear_algebra(case):
    a = tensor("2x3x3")
    positive = a @ a.mT + torch.eye(3)
    case("linalg_matrix_exp linalg_inv_ex _linalg_det _linalg_slogdet", [a])
    case("linalg_lu_factor_ex: 2x3x4", "linalg_qr: 2x4x3 | 3x2 mode=complete")
    case("linalg_cholesky_ex", [positive])
    factor = torch.linalg.cholesky(positive)
    case("cholesky_inverse", [factor])
    case("cholesky_solve", ["2x3x2", factor])
    case("_linalg_solve_ex", [a, "2x3x2"], [a, "2x3"])
    lu, pivots, _ = torch.ops.aten.linalg_lu_factor_ex(a)
    case("linalg_lu_solve", [lu, pivots, "2x3x2"])
    case("linalg_solve_triangular", [positive, "2x3x2"], upper=False)
    case("linalg_solve_triangular", [positive, "2x3x2"], upper=True)
    case("linalg_cross: 2x3 2x3", "_linalg_svd: 3x2 compute_uv=False")


def special(case):
    for name in ("igamma", "igammac"):
        case(name, [tensor("f64.12>0.125") * 4, tensor("f64.12>0.125") * 5])
        case(name, "4{0,1,0,-1} 4{1,0,0,1}")
    case("polygamma", *(f"f64.6>0.25 n={n}" for n in (0, 1, 2, 4)))
    case("special_zeta", [1 + tensor("f64.6>0.25"), "f64.6>0.25"],
         "5{2,2,3.5,1,0.5} 5{-1.5,0,-1.5,2,2}")
    case("special_modified_bessel_k0 special_modified_bessel_k1 special_scaled_modified_bessel_k0 "
         "special_scaled_modified_bessel_k1", "f64.8{0,0.125,0.5,1,2.5,8,40,-1}")
    case("special_modified_bessel_i0 special_modified_bessel_i1", "6")
    case("nextafter", "f64.6 f64.6", "6 6", "bf16.6 bf16.6", "3{0,0,1} 3{1,-1,1}")


def others(case):
    case("bucketize.Tensor", "6 5{-1,0,0.5,0.5,1}")
    case("bucketize.Tensor", [tensor("i64.6"), tensor("i64.3").sort()[0]], out_int32=True,
         right=True)
    case("histc", "12 bins=4 min=-1 max=1", "12 bins=3")
    for reduce, own in itertools.product(("prod", "mean", "amax", "amin"), (True, False)):
        case("index_reduce", "3x2 i64.4{0,2,2,0} 4x2", dim=0, reduce=reduce, include_self=own)
    case("view.dtype", "4 dtype=i32", "bf16.4 dtype=i16", "i64.3 dtype=f64")
    groups = tensor("bf16.2x8x8")
    case("_grouped_mm", ["bf16.5x8", groups, "i32.2{2,5}"], ["bf16.2x3x8", groups])


def polynomials(case):
    degrees = "6{0,1,2,5,-1,3}"
    for kind in ("chebyshev_polynomial_", "shifted_chebyshev_polynomial_"):
        case(" ".join(f"special_{kind}{which}" for which in "tuvw"), f"6 {degrees}")
    case("special_hermite_polynomial_h special_hermite_polynomial_he special_laguerre_polynomial_l "
         "special_legendre_polynomial_p", f"6 {degrees}")
    case("special_hermite_polynomial_h.n_scalar", "4", n=3)
    case("special_laguerre_polynomial_l.x_scalar", degrees, x=0.5)
    case("frexp.Tensor", "6")


def carried(case):
    """Operators that DTensor carries out step by step."""
    case("all.dims: b8.2x3x2 dim=[0,2] keepdim=True", "_euclidean_dist: 3x2 4x2",
         "_weight_norm_interface: 3x2 3x1 dim=0 | bf16.3x2 bf16.1x2 dim=1",
         "lift alias_copy zero: 2x3", "fill.Scalar: 2x3 value=1.5",
         "diagonal_backward: 3 input_sizes=[3,4] offset=1 dim1=0 dim2=1",
         "dropout: 2x3 p=0.5 train=False",
         "max_pool2d: 1x2x5x4! kernel_size=[3,2] stride=[2,1] padding=[1,1]",
         "max_pool3d: 1x4x2x3! kernel_size=[2,2,2]",
         "adaptive_avg_pool2d: 1x2x3x5 output_size=[1,1] | 1x2x3x5 output_size=[2,2]",
         "adaptive_avg_pool3d: 1x2x3x3x2 output_size=[2,1,2]", "conv1d: 2x2x5 3x2x3 3 padding=[1]",
         "conv2d: 1x2x4x4 2x1x3x3 2 stride=[2,1] groups=2",
         "conv_transpose1d: 1x2x3 2x2x2 - stride=[2]",
         "conv_transpose2d.input: 1x2x2x3 2x2x2x2 2 stride=[2,2]", "_weight_norm: 3x2 3x1 dim=0",
         "rms_norm: bf16.2x4 bf16.4 normalized_shape=[4] eps=1e-05")
    case("kl_div", *(f"2x3 2x3>0.125 reduction={reduction}" for reduction in (0, 1, 2)),
         "2x3 2x3 reduction=1 log_target=True")
    case("pairwise_distance: 3x4 3x4 | 3x4 3x4 p=1.0 eps=0.125 keepdim=True", "special_ndtr: 2x3",
         "nanmean: 2x2{1,nan,2,3} dim=[1]",
         "var.dim std.dim var_mean.dim: 3x4 dim=[1] | 3x4 dim=[0] unbiased=False keepdim=True",
         "argsort.stable: i64.3x4<3 stable=True dim=1 descending=True", "msort: 4x2!",
         "diff: 2x5 | 4x2 n=2 dim=0",
         "repeat_interleave.self_int: 2x3 repeats=2 dim=-1 | 3 repeats=3",
         "split.sizes: 2x5 split_size=[2,3] dim=1", "unsafe_chunk: 5x2 chunks=2",
         "flipud fliplr resolve_conj: 2x3")
    square = tensor("2x3x3") + 4 * torch.eye(3)
    case("linalg_det linalg_slogdet linalg_svdvals matrix_exp", [square / 4])
    lu, pivots = torch.linalg.lu_factor(square)
    case("lu_solve", ["2x3x2", lu, pivots])


ALL = [views, copies, cuts, indices, convolutions, lists, pooling, resampling, batch_norms,
       linear_algebra, special, others, polynomials, carried]
