# SPDX-License-Identifier: BSD-3-Clause
"""Pooling, resampling, batch norm and linear algebra, in the form of common_rows."""


def pooling(row):
    windows = {"kernel_size": [3, 2], "stride": [2, 2], "padding": [1, 0]}
    row("avg_pool1d", "ac{8}", kernel_size=[2])
    row("avg_pool2d", "ac{8}{8}", **windows)
    row("avg_pool2d", "c{8}{6}", kernel_size=[2, 2], ceil_mode=True, divisor_override=3)
    row("avg_pool3d", "ac{4}{4}{4}", kernel_size=[2, 2, 2], count_include_pad=False)
    row("adaptive_avg_pool1d", "ac{8}", output_size=[3])
    row("_adaptive_avg_pool2d", "ac{8}{6}", output_size=[3, 2])
    row("_adaptive_avg_pool2d_backward", "ac{3}{2} ac{8}{6}")
    row("adaptive_max_pool2d", "ac{8}{6}", output_size=[3, 2])
    row("max_pool2d_with_indices", "ac{8}{8}", **windows)
    row("max_pool2d_with_indices", "c{8}{8}", kernel_size=[2, 2], ceil_mode=True)
    row(
        "max_pool2d_with_indices_backward",
        "ac{4}{4} ac{8}{8} i64.ac{4}{4}<64",
        kernel_size=[2, 2],
        stride=[2, 2],
        padding=[0, 0],
        dilation=[1, 1],
        ceil_mode=False,
    )
    row("max_unpool2d", "ac{4}{4} i64.ac{4}{4}<64", output_size=[8, 8])


def resampling(row):
    for name in ("upsample_nearest2d", "_upsample_nearest_exact2d"):
        row(name, "ac{4}{6}", output_size=[8, 9])
        row(
            name + "_backward",
            "ac{8}{9}",
            output_size=[8, 9],
            input_size=lambda z: [z.a, z.c, 4, 6],
        )
    for name in ("upsample_bilinear2d", "upsample_bicubic2d"):
        row(name, "ac{4}{6}", output_size=[8, 9], align_corners=False)
        row(name, "ac{4}{6}", output_size=[8, 9], align_corners=True)
        row(
            name + "_backward",
            "ac{8}{9}",
            output_size=[8, 9],
            input_size=lambda z: [z.a, z.c, 4, 6],
            align_corners=False,
        )
    row("upsample_nearest1d", "ac{4}", output_size=[8])
    row("upsample_linear1d", "ac{4}", output_size=[8], align_corners=False)
    row("upsample_trilinear3d", "ac{2}{3}{4}", output_size=[4, 6, 8], align_corners=False)


def batch_norms(row):
    learns = {"training": True, "momentum": 0.1, "eps": 1e-5}
    fixed = {**learns, "training": False}
    row("native_batch_norm", "ac{4} c c c c", **learns)
    row("native_batch_norm", "ac c c - -", **learns)
    row("native_batch_norm", "ac{4}{4} - - c c", **fixed)
    row("_native_batch_norm_legit", "ac{4}{4} c c c c", **learns)
    row("_native_batch_norm_legit.no_stats", "ac{4} c c", **learns)
    row("_native_batch_norm_legit_no_training", "ac{4} c c c c", momentum=0.1, eps=1e-5)
    row(
        "native_batch_norm_backward",
        "ac{4} ac{4} c c c c c",
        train=True,
        eps=1e-5,
        output_mask=[True, True, True],
    )
    row(
        "native_batch_norm_backward",
        "ac{4} ac{4} c c c c c",
        train=False,
        eps=1e-5,
        output_mask=[True, False, True],
    )


def linear_algebra(row):
    for name in ("linalg_matrix_exp", "linalg_inv_ex", "linalg_cholesky_ex", "cholesky_inverse"):
        row(name, "a{4}{4}")
    for name in ("_linalg_det", "_linalg_slogdet", "linalg_lu_factor_ex"):
        row(name, "a{4}{4}")
    row("_linalg_eigh", "a{4}{4}")
    row("_linalg_svd", "a{4}{3}")
    row("linalg_qr", "a{3}{4}", mode="complete")
    row("_linalg_solve_ex", "a{4}{4} a{4}c")
    row("linalg_solve_triangular", "a{4}{4} a{4}c", upper=True)
    row("cholesky_solve", "a{4}c a{4}{4}")
    row("linalg_lu_solve", "a{4}{4} i32.a{4}<5 a{4}c")
    row("linalg_cross", "a{3}b a{3}b", dim=1)


def others(row):
    row("special_hermite_polynomial_h", "ab b")
    row("special_laguerre_polynomial_l.n_scalar", "ab", n=2)
    row("special_chebyshev_polynomial_t.x_scalar", "ab", x=0.5)
    row("frexp.Tensor", "ab")
    row("diagonal_scatter", "{4}b{4} b{4}", dim1=0, dim2=2)
    row("diagonal_scatter", "aac ca")
    row("_foreach_clone", "[ab b]")
    row("_foreach_mm", "[mk kn] [kn nm]")


def images(row):
    for group in (pooling, resampling, batch_norms, linear_algebra, others):
        group(row)
