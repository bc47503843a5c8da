# SPDX-License-Identifier: BSD-3-Clause
"""Views, cuts, indices, convolutions and lists, and with what operator_values.py asks about
them."""

import torch
from torch_operator_tensors import BF16, I64, b, case, f, i, scalar


def views():
    x = f(2, 3, 4)
    yield case("view", x, size=[6, -1])
    yield case("view", f(0, 3), size=[3, 0])
    yield case("_unsafe_view", x, size=[24])
    yield case("reshape", i(2, 3), shape=[3, 2])
    yield case("view_copy", x, size=[4, 6])
    yield case("permute", x, dims=[2, 0, -2])
    yield case("transpose.int", x, dim0=0, dim1=-1)
    yield case("t", f(2, 3))
    yield case("t", f(3))
    yield case("t_", f(2, 3))
    yield case("expand", f(3, 1), size=[2, -1, 2])
    yield case("squeeze", f(1, 2, 1))
    yield case("squeeze.dim", f(1, 2, 1), dim=-1)
    yield case("squeeze.dims", f(1, 2, 1), dim=[0, 1])
    yield case("unsqueeze", f(2, 3), dim=-1)
    yield case("unflatten.int", f(2, 6), dim=1, sizes=[2, -1])
    yield case("flatten.using_ints", x, start_dim=1)
    yield case("flatten.using_ints", f())
    yield case("repeat", f(2, 1), repeats=[2, 1, 3])
    yield case("tile", f(2, 2), dims=[2])
    yield case("movedim.intlist", x, source=[0, -1], destination=[-1, 0])
    yield case("movedim.int", x, source=0, destination=2)
    yield case("alias", i(2))
    yield case("clone", f(2, dtype=BF16))
    yield case("detach", f(2))
    yield case("contiguous", f(2))
    for dtype, value in (
        ("i64", f(6)),
        ("bool", f(6)),
        ("bf16", f(6)),
        ("u8", i(3)),
        ("f32", b(3)),
    ):
        yield case("_to_copy", value, dtype=dtype)
    yield case("copy_", f(2, 3), i(3))
    yield case("copy", i(2, 3), f(3))
    yield case("zero_", f(2, 3))
    yield case("zeros_like", f(2, 3))
    yield case("ones_like", i(2, 3), dtype="f64")
    yield case("full_like", f(2, 3), fill_value=1.5)
    yield case("new_zeros", f(2), size=[2, 2])
    yield case("new_ones", f(2), size=[])
    yield case("new_full", i(2), size=[3], fill_value=4)
    yield case("fill_.Scalar", f(2, 3), value=0.5)
    yield case("fill.Tensor", f(2, 3), scalar(2, I64))


def cuts():
    yield case("cat", [f(2, 3), f(1, 3), f(0)], dim=0)
    yield case("cat", [f(2, 1), i(2, 2)], dim=-1)
    yield case("stack", [f(2), f(2)], dim=-1)
    yield case("split.Tensor", f(5, 2), split_size=2)
    yield case("split_with_sizes", f(2, 5), split_sizes=[1, 4], dim=1)
    yield case("chunk", f(5, 2), chunks=3)
    yield case("unbind.int", f(2, 3), dim=1)
    yield case("slice.Tensor", f(5, 2), dim=0, start=1, end=-1, step=2)
    yield case("slice.Tensor", f(5, 2), dim=0, start=4, end=2)
    yield case("slice.Tensor", f(5, 2), dim=1, end=99)
    yield case("slice_backward", f(2, 2), input_sizes=[5, 2], dim=0, start=1, end=4, step=2)
    yield case("slice_scatter", f(5, 2), f(2, 2), dim=0, start=1, end=4, step=2)
    yield case("narrow", f(5, 2), dim=0, start=1, length=3)
    yield case("select.int", f(3, 2), dim=0, index=-1)
    yield case("select_backward", f(2), input_sizes=[3, 2], dim=0, index=1)
    yield case("select_scatter", f(3, 2), f(3), dim=1, index=0)
    yield case("constant_pad_nd", f(2, 3), pad=[1, 2, -1, 1], value=0.5)
    yield case("pad", f(2, 3), pad=[1, 0])
    yield case("flip", f(2, 3, 2), dims=[0, -1])
    yield case("roll", f(3, 4), shifts=[1, -1], dims=[0, 1])
    yield case("roll", f(2, 3), shifts=[2])
    for name in ("tril", "triu"):
        yield case(name, f(3, 4), diagonal=1)
        yield case(name, f(2, 3, 2), diagonal=-1)
    yield case("diagonal", f(3, 4), offset=1)
    yield case("diagonal", f(2, 3, 2), offset=-1, dim1=1, dim2=2)
    yield case("diagonal_scatter", f(3, 3), f(3))
    yield case("diag_embed", f(2, 2), offset=1)
    yield case("diag_embed", f(2, 2), dim1=0, dim2=2)
    yield case("diag", f(3), diagonal=-1)
    yield case("diag", f(3, 3), diagonal=1)


def indices():
    yield case("index_select", f(4, 2), i(3, below=4), dim=0)
    yield case("index_select", f(2, 4), i(below=4), dim=-1)
    yield case("gather", f(3, 4), i(2, 3, below=4), dim=1)
    yield case("gather", f(3, 4), i(2, 3, below=3), dim=0)
    yield case("gather", f(), i(1, below=1), dim=0)
    unique = torch.tensor([[0, 2, 1], [3, 1, 0]])
    yield case("scatter.src", f(2, 4), unique, f(2, 3), dim=1)
    yield case("scatter.src", f(2, 4), unique, f(3, 4), dim=1)
    yield case("scatter_.value", f(2, 4), unique, dim=1, value=1.5)
    yield case("scatter_add", f(2, 4), i(2, 5, below=4), f(2, 5), dim=1)
    yield case("index.Tensor", f(3, 4), [i(2, 2, low=-3, below=3)])
    yield case("index.Tensor", f(3, 4, 2), [None, i(3, below=4)])
    yield case("index.Tensor", f(3, 4, 2), [i(2, below=3), None, i(2, below=2)])
    yield case("index.Tensor", f(3, 4, 2), [None, i(2, 1, below=4), i(3, below=2)])
    yield case("index_put", f(3, 4), [torch.tensor([0, 2])], f(2, 4))
    yield case("index_put_", f(3, 4), [torch.tensor([0, 0, 2])], f(4), accumulate=True)
    yield case("index_put", f(3, 4), [None, torch.tensor([1, -1])], f())
    yield case("index_fill.int_Scalar", f(3, 2), torch.tensor([0, 2]), dim=0, value=9)
    yield case("index_add", f(3, 2), torch.tensor([0, 0]), f(2, 2), dim=0, alpha=2)
    yield case("index_copy", f(3, 2), torch.tensor([2, 0]), f(2, 2), dim=0)


def convolutions():
    base = {
        "stride": [1],
        "padding": [0],
        "dilation": [1],
        "transposed": False,
        "output_padding": [0],
        "groups": 1,
    }

    def of(x, w, bias, **more):
        dims = x.dim() - 2
        own = {
            key: value * dims if isinstance(value, list) and len(value) == 1 else value
            for key, value in {**base, **more}.items()
        }
        yield case("convolution", x, w, bias, **own)
        shape = call_shape(x, w, own)
        yield case(
            "convolution_backward",
            f(*shape),
            x,
            w,
            **own,
            output_mask=[True, True, True],
            bias_sizes=[shape[1]],
        )

    def call_shape(x, w, own):
        return torch.ops.aten.convolution(x, w, None, *own.values()).shape

    yield from of(f(2, 2, 5), f(3, 2, 3), f(3))
    yield from of(f(1, 2, 4, 4), f(2, 2, 3, 3), None, padding=[1], stride=[2])
    yield from of(f(1, 4, 4, 3), f(4, 2, 2, 1), f(4), groups=2)
    yield from of(f(1, 1, 5, 5), f(1, 1, 2, 2), None, dilation=[2], padding=[0, 1])
    yield from of(f(1, 1, 2, 3, 3), f(2, 1, 2, 2, 2), f(2))
    yield from of(
        f(1, 2, 3), f(2, 1, 3), f(1), transposed=True, stride=[2], padding=[1], output_padding=[1]
    )
    yield case("conv2d", f(1, 2, 3, 3), f(1, 2, 2, 2), f(1))


def lists():
    def two(**more):
        return [f(2, 2, **more), f(3, **more)]

    for name in ("abs", "neg", "exp", "tanh", "sign"):
        yield case(f"_foreach_{name}", two())
    yield case("_foreach_sqrt", two(low=0.25))
    yield case("_foreach_neg_", two())
    yield case("_foreach_zero_", two())
    yield case("_foreach_add.List", two(), two(), alpha=0.5)
    yield case("_foreach_add.Scalar", two(), scalar=1.5)
    yield case("_foreach_add_.ScalarList", two(), scalars=[1.5, 2])
    yield case("_foreach_add.Tensor", two(), f(), alpha=2)
    yield case("_foreach_sub.List", two(), two())
    yield case("_foreach_mul.Scalar", two(dtype=BF16), scalar=0.5)
    yield case("_foreach_mul_.Tensor", two(), f())
    yield case("_foreach_div.List", two(), two(low=0.5))
    yield case("_foreach_div_.ScalarList", two(), scalars=[2, 4])
    yield case("_foreach_pow.Scalar", two(low=0.25), exponent=2)
    yield case("_foreach_pow.ScalarAndTensor", two(), self=2)
    yield case("_foreach_maximum.List", two(), two())
    yield case("_foreach_clamp_min.Scalar", two(), scalar=0.5)
    yield case("_foreach_clamp_max.ScalarList", two(), scalars=[0.5, -0.5])
    yield case("_foreach_norm.Scalar", two(), ord=2)
    yield case("_foreach_norm.Scalar", two(), ord=1)
    yield case("_foreach_lerp.Scalar", two(), two(), weight=0.25)
    yield case("_foreach_lerp_.List", two(), two(), two())
    yield case("_foreach_addcmul.Scalar", two(), two(), two(), value=0.5)
    yield case("_foreach_addcdiv_.ScalarList", two(), two(), two(low=1), scalars=[0.5, 2])
    yield case("_foreach_addcmul.Tensor", two(), two(), two(), scalar([0.5, 2.0]))
    yield case("_foreach_copy_", two(), two())
    yield case("_foreach_max", two())
    options = {"lr": 0.1, "beta1": 0.5, "beta2": 0.75, "weight_decay": 0.25, "eps": 0.125}
    for name in ("_fused_adam_", "_fused_adamw_"):
        for maximizes in (False, True):
            steps = [scalar(3.0), scalar(3.0)]
            yield case(
                name,
                two(),
                two(),
                two(),
                two(low=0),
                [],
                steps,
                **options,
                amsgrad=False,
                maximize=maximizes,
            )
        yield case(
            name,
            two(),
            two(),
            two(),
            two(low=0),
            two(low=0),
            steps,
            **options,
            amsgrad=True,
            maximize=False,
        )
