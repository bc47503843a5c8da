# SPDX-License-Identifier: BSD-3-Clause
"""Operators that are carried out by their steps: what operator_values.py asks about them."""

import torch
from torch_operator_tensors import BF16, apart, b, case, f, i


def dispatched():
    yield case("all.dims", b(2, 3, 2), dim=[0, 2], keepdim=True)
    yield case("_euclidean_dist", f(3, 2), f(4, 2))
    yield case("_weight_norm_interface", f(3, 2), f(3, 1), dim=0)
    yield case("_weight_norm_interface", f(3, 2, dtype=BF16), f(1, 2, dtype=BF16), dim=1)
    for name in ("lift", "alias_copy", "zero"):
        yield case(name, f(2, 3))
    yield case("fill.Scalar", f(2, 3), value=1.5)
    yield case("diagonal_backward", f(3), input_sizes=[3, 4], offset=1, dim1=0, dim2=1)


def networks():
    yield case("dropout", f(2, 3), p=0.5, train=False)
    yield case("max_pool2d", apart(1, 2, 5, 4), kernel_size=[3, 2], stride=[2, 1], padding=[1, 1])
    yield case("max_pool3d", apart(1, 4, 2, 3), kernel_size=[2, 2, 2])
    yield case("adaptive_avg_pool2d", f(1, 2, 3, 5), output_size=[1, 1])
    yield case("adaptive_avg_pool2d", f(1, 2, 3, 5), output_size=[2, 2])
    yield case("adaptive_avg_pool3d", f(1, 2, 3, 3, 2), output_size=[2, 1, 2])
    yield case("conv1d", f(2, 2, 5), f(3, 2, 3), f(3), padding=[1])
    yield case("conv2d", f(1, 2, 4, 4), f(2, 1, 3, 3), f(2), stride=[2, 1], groups=2)
    yield case("conv_transpose1d", f(1, 2, 3), f(2, 2, 2), None, stride=[2])
    yield case("conv_transpose2d.input", f(1, 2, 2, 3), f(2, 2, 2, 2), f(2), stride=[2, 2])
    yield case("_weight_norm", f(3, 2), f(3, 1), dim=0)
    yield case("rms_norm", f(2, 4, dtype=BF16), f(4, dtype=BF16), normalized_shape=[4], eps=1e-5)
    for reduction in (0, 1, 2):
        yield case("kl_div", f(2, 3), f(2, 3, low=0.125), reduction=reduction)
    yield case("kl_div", f(2, 3), f(2, 3), reduction=1, log_target=True)
    yield case("pairwise_distance", f(3, 4), f(3, 4))
    yield case("pairwise_distance", f(3, 4), f(3, 4), p=1.0, eps=0.125, keepdim=True)


def arrays():
    yield case("special_ndtr", f(2, 3))
    yield case("nanmean", torch.tensor([[1.0, float("nan")], [2.0, 3.0]]), dim=[1])
    for name in ("var.dim", "std.dim", "var_mean.dim"):
        yield case(name, f(3, 4), dim=[1])
        yield case(name, f(3, 4), dim=[0], unbiased=False, keepdim=True)
    yield case("argsort.stable", i(3, 4, below=3), stable=True, dim=1, descending=True)
    yield case("msort", apart(4, 2))
    yield case("diff", f(2, 5))
    yield case("diff", f(4, 2), n=2, dim=0)
    yield case("repeat_interleave.self_int", f(2, 3), repeats=2, dim=-1)
    yield case("repeat_interleave.self_int", f(3), repeats=3)
    yield case("split.sizes", f(2, 5), split_size=[2, 3], dim=1)
    yield case("unsafe_chunk", f(5, 2), chunks=2)
    yield case("flipud", f(2, 3))
    yield case("fliplr", f(2, 3))
    yield case("resolve_conj", f(2, 3))


def matrices():
    square = f(2, 3, 3) + 4 * torch.eye(3)
    for name in ("linalg_det", "linalg_slogdet", "linalg_svdvals", "matrix_exp"):
        yield case(name, square / 4)
    lu, pivots = torch.linalg.lu_factor(square)
    yield case("lu_solve", f(2, 3, 2), lu, pivots)


def carried():
    for group in (dispatched, networks, arrays, matrices):
        yield from group()
