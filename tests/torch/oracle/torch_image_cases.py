# SPDX-License-Identifier: BSD-3-Clause
"""Pooling, resampling, batch norm, linear algebra, special functions: what operator_values.py
asks about them."""

import torch
from torch_operator_tensors import BF16, F64, apart, case, f, i


def pooling():
    yield case("avg_pool1d", f(2, 2, 5), kernel_size=[2], stride=[2], ceil_mode=True)
    windows = {"kernel_size": [3, 2], "stride": [2, 1], "padding": [1, 1]}
    yield case("avg_pool2d", f(2, 5, 4), **windows)
    yield case("avg_pool2d", f(2, 5, 4), **windows, ceil_mode=True, count_include_pad=False)
    yield case("avg_pool2d", f(1, 4, 4), kernel_size=[2, 2], divisor_override=3)
    yield case("avg_pool3d", f(1, 2, 3, 2), kernel_size=[2, 2, 2], stride=[1, 1, 1])
    yield case("adaptive_avg_pool1d", f(2, 5), output_size=[3])
    yield case("_adaptive_avg_pool2d", f(1, 1, 5, 3), output_size=[2, 2])
    yield case("_adaptive_avg_pool2d_backward", f(1, 1, 2, 2), f(1, 1, 5, 3))
    yield case("adaptive_max_pool2d", apart(1, 5, 3), output_size=[2, 2])
    yield case("max_pool2d_with_indices", apart(2, 5, 4), **windows, dilation=[1, 2])
    yield case("max_pool2d_with_indices", apart(1, 5, 5), kernel_size=[2, 2], ceil_mode=True)
    x = apart(1, 1, 4, 4)
    window = {"kernel_size": [2, 2], "stride": [1, 1], "padding": [0, 0], "dilation": [1, 1]}
    _, at = torch.ops.aten.max_pool2d_with_indices(x, [2, 2], [1, 1])
    yield case(
        "max_pool2d_with_indices_backward", f(1, 1, 3, 3), x, at, **window, ceil_mode=False
    )
    y, at = torch.ops.aten.max_pool2d_with_indices(x, [2, 2], [2, 2])
    yield case("max_unpool2d", y, at, output_size=[4, 4])


def resampling():
    for name in ("upsample_nearest2d", "_upsample_nearest_exact2d"):
        yield case(name, f(1, 1, 3, 2), output_size=[5, 3])
        yield case(name + "_backward", f(1, 1, 5, 3), output_size=[5, 3], input_size=[1, 1, 3, 2])
    for name in ("upsample_bilinear2d", "upsample_bicubic2d"):
        for corners in (False, True):
            own = {"output_size": [5, 3], "align_corners": corners}
            yield case(name, f(1, 1, 3, 4), **own)
            yield case(name + "_backward", f(1, 1, 5, 3), **own, input_size=[1, 1, 3, 4])
    own = {"output_size": [6, 4], "align_corners": False, "scales_h": 2.0, "scales_w": 2.0}
    yield case("upsample_bilinear2d", f(1, 1, 3, 2), **own)
    yield case("upsample_nearest1d", f(1, 2, 3), output_size=[7])
    yield case("upsample_linear1d", f(1, 2, 3), output_size=[7], align_corners=False)
    yield case("upsample_trilinear3d", f(1, 1, 2, 1, 2), output_size=[3, 2, 3], align_corners=True)


def batch_norms():
    learns = {"training": True, "momentum": 0.1, "eps": 1e-5}
    fixed = {**learns, "training": False}
    mean, var = f(3), f(3, low=0.5)
    yield case("native_batch_norm", f(2, 3, 2), f(3), f(3), mean, var, **learns)
    yield case("native_batch_norm", f(4, 3), None, None, None, None, **learns)
    yield case("native_batch_norm", f(2, 3, 2), f(3), None, mean, var, **fixed)
    own = {"momentum": 0.1, "eps": 1e-5}
    yield case("_native_batch_norm_legit_no_training", f(2, 3), f(3), f(3), mean, var, **own)
    x, w = f(2, 3, 2), f(3)
    _, saved, scale = torch.ops.aten.native_batch_norm(x, w, None, None, None, True, 0.1, 1e-5)
    for train in (True, False):
        own = {"train": train, "eps": 1e-5, "output_mask": [True, True, True]}
        yield case("native_batch_norm_backward", f(2, 3, 2), x, w, mean, var, saved, scale, **own)


def linear_algebra():
    a = f(2, 3, 3)
    positive = a @ a.mT + torch.eye(3)
    for name in ("linalg_matrix_exp", "linalg_inv_ex", "_linalg_det", "_linalg_slogdet"):
        yield case(name, a)
    yield case("linalg_lu_factor_ex", f(2, 3, 4))
    yield case("linalg_qr", f(2, 4, 3))
    yield case("linalg_qr", f(3, 2), mode="complete")
    yield case("linalg_cholesky_ex", positive)
    factor = torch.linalg.cholesky(positive)
    yield case("cholesky_inverse", factor)
    yield case("cholesky_solve", f(2, 3, 2), factor)
    yield case("_linalg_solve_ex", a, f(2, 3, 2))
    yield case("_linalg_solve_ex", a, f(2, 3))
    lu, pivots, _ = torch.ops.aten.linalg_lu_factor_ex(a)
    yield case("linalg_lu_solve", lu, pivots, f(2, 3, 2))
    for upper in (False, True):
        yield case("linalg_solve_triangular", positive, f(2, 3, 2), upper=upper)
    yield case("linalg_cross", f(2, 3), f(2, 3))
    yield case("_linalg_svd", f(3, 2), compute_uv=False)


def special():
    for name in ("igamma", "igammac"):
        yield case(name, f(12, low=0.125, dtype=F64) * 4, f(12, low=0.125, dtype=F64) * 5)
        yield case(name, torch.tensor([0.0, 1, 0, -1]), torch.tensor([1.0, 0, 0, 1]))
    for n in (0, 1, 2, 4):
        yield case("polygamma", f(6, low=0.25, dtype=F64), n=n)
    yield case("special_zeta", 1 + f(6, low=0.25, dtype=F64), f(6, low=0.25, dtype=F64))
    orders = torch.tensor([2.0, 2, 3.5, 1, 0.5])
    yield case("special_zeta", orders, torch.tensor([-1.5, 0, -1.5, 2, 2]))
    for kind in ("", "scaled_"):
        for order in (0, 1):
            x = torch.tensor([0, 0.125, 0.5, 1, 2.5, 8, 40, -1], dtype=F64)
            yield case(f"special_{kind}modified_bessel_k{order}", x)
    for order in (0, 1):
        yield case(f"special_modified_bessel_i{order}", f(6))
    for dtype in (F64, None, BF16):
        own = {"dtype": dtype} if dtype else {}
        yield case("nextafter", f(6, **own), f(6, **own))
    yield case("nextafter", torch.tensor([0.0, 0, 1]), torch.tensor([1.0, -1, 1]))


def polynomials():
    degrees = torch.tensor([0.0, 1, 2, 5, -1, 3])
    for kind in ("chebyshev_polynomial_", "shifted_chebyshev_polynomial_"):
        for which in "tuvw":
            yield case(f"special_{kind}{which}", f(6), degrees)
    for name in ("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l"):
        yield case("special_" + name, f(6), degrees)
    yield case("special_legendre_polynomial_p", f(6), degrees)
    yield case("special_hermite_polynomial_h.n_scalar", f(4), n=3)
    yield case("special_laguerre_polynomial_l.x_scalar", degrees, x=0.5)
    yield case("frexp.Tensor", f(6))


def others():
    yield case("bucketize.Tensor", f(6), torch.tensor([-1.0, 0, 0.5, 0.5, 1]))
    yield case("bucketize.Tensor", i(6), i(3).sort()[0], out_int32=True, right=True)
    yield case("histc", f(12), bins=4, min=-1, max=1)
    yield case("histc", f(12), bins=3)
    for reduce in ("prod", "mean", "amax", "amin"):
        for own in (True, False):
            at = torch.tensor([0, 2, 2, 0])
            attributes = {"dim": 0, "reduce": reduce, "include_self": own}
            yield case("index_reduce", f(3, 2), at, f(4, 2), **attributes)
    yield case("view.dtype", f(4), dtype="i32")
    yield case("view.dtype", f(4, dtype=BF16), dtype="i16")
    yield case("view.dtype", i(3), dtype="f64")
    ends, groups = torch.tensor([2, 5], dtype=torch.int32), f(2, 8, 8, dtype=BF16)
    yield case("_grouped_mm", f(5, 8, dtype=BF16), groups, ends)
    yield case("_grouped_mm", f(2, 3, 8, dtype=BF16), groups)


def images():
    for group in (pooling, resampling, batch_norms, linear_algebra, special, others, polynomials):
        yield from group()
