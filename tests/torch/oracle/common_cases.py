# SPDX-License-Identifier: BSD-3-Clause
"""Which operators operator_values.py asks about, and with what: sums, norms, attention and
losses here, all others in the modules it names."""

import torch
import torch_carried_cases
import torch_image_cases
import torch_pointwise_cases as pointwise
import rare_cases as shapes
from torch_operator_tensors import BF16, F16, F64, INF, U8, apart, b, case, f, i, scalar


def matrices():
    yield case("mm", f(3, 4), f(4, 2))
    yield case("mm", f(3, 0), f(0, 2))
    yield case("mm", i(2, 3), i(3, 2))
    yield case("mm", f(3, 4, dtype=BF16), f(4, 2, dtype=BF16))
    yield case("mm", f(3, 4, dtype=F64), f(4, 2, dtype=F64))
    yield case("mm.out", f(3, 4), f(4, 2), f(3, 2))
    yield case("addmm", f(2), f(3, 4), f(4, 2), alpha=0.5, beta=2)
    yield case("addmm", f(3, 1), f(3, 4), f(4, 2))
    yield case("addmm_", f(3, 2), f(3, 4), f(4, 2), beta=0)
    yield case("bmm", f(2, 3, 4), f(2, 4, 2))
    yield case("baddbmm", f(3, 2), f(2, 3, 4), f(2, 4, 2), alpha=2)
    yield case("dot", f(5), f(5))
    yield case("vdot", f(5), f(5))
    yield case("mv", f(3, 4), f(4))
    yield case("addmv", f(3), f(3, 4), f(4), alpha=0.5, beta=0.25)
    for a, c in [
        ((3,), (3,)),
        ((3,), (3, 2)),
        ((2, 3), (3,)),
        ((2, 2, 3), (3, 2)),
        ((2, 1, 2, 3), (2, 3, 2)),
        ((3,), (2, 3, 2)),
    ]:
        yield case("matmul", f(*a), f(*c))
    yield case("linear", f(2, 2, 3), f(4, 3), f(4))
    yield case("linear", f(3), f(4, 3))
    yield case("linear", f(2, 3, dtype=BF16), f(4, 3, dtype=BF16), f(4, dtype=BF16))
    yield case("outer", f(3), f(2))
    for equation, *shapes in [
        ("ij,jk->ik", (2, 3), (3, 2)),
        ("bhqd,bhkd->bhqk", (1, 2, 3, 2), (1, 2, 2, 2)),
        ("...ij,...jk", (2, 2, 3), (3, 2)),
        ("ii->i", (3, 3)),
        ("ij->", (2, 3)),
        ("i,j,k->kji", (2,), (2,), (3,)),
        ("bsd,df->bsf", (2, 2, 3), (3, 2)),
    ]:
        yield case("einsum", [f(*shape) for shape in shapes], equation=equation)


def reductions():
    for name in ("sum", "nansum", "prod"):
        yield case(name, f(2, 3))
        yield case(name, i(2, 3))
        yield case(name, f(0, 3))
    for dim in ([0], [-1], [0, 2], [], None):
        yield case("sum.dim_IntList", f(2, 3, 2), dim=dim, keepdim=True)
        yield case("mean.dim", f(2, 3, 2), dim=dim)
    yield case("sum.dim_IntList", b(2, 3), dim=[1])
    yield case("sum.dim_IntList", f(2, 3), dim=[1], dtype="f64")
    yield case("sum.dim_IntList", f(4, 3, dtype=BF16), dim=[0])
    yield case("sum.dim_IntList", f(), dim=[0])
    yield case("sum.IntList_out", f(2, 3), f(3), dim=[0])
    yield case("nansum", scalar([1.0, float("nan"), 2.0]))
    yield case("prod.dim_int", f(2, 3), dim=1)
    yield case("prod.dim_int", f(2, 0), dim=1, keepdim=True)
    yield case("mean", f(2, 3))
    yield case("mean", i(2, 3), dtype="f32")
    for name in ("amax", "amin"):
        yield case(name, f(2, 3, 2), dim=[0, -1])
        yield case(name, f(2, 3), dim=[])
        yield case(name, i(2, 3), dim=[1], keepdim=True)
        yield case(name, scalar([1.0, float("nan")]), dim=[0])
    for name in ("max", "min"):
        yield case(name, f(2, 3))
        yield case(f"{name}.dim", apart(3, 4), dim=1)
        yield case(f"{name}.dim", apart(3, 4, dtype=BF16), dim=0, keepdim=True)
        yield case(f"{name}.dim", i(3, 4, below=3), dim=-1)
        yield case(f"{name}.dim", b(3, 2), dim=1)
        yield case(f"{name}.dim", scalar([1.0, float("nan"), 3]), dim=0)
        yield case(f"arg{name}", apart(3, 4))
        yield case(f"arg{name}", i(3, 4, below=3), dim=0, keepdim=True)
        yield case(f"arg{name}", f(), dim=0)
    yield case("max.dim_max", apart(3, 4), f(3), i(3), dim=1)
    yield case("aminmax", f(2, 3), dim=1)
    yield case("median", apart(2, 3))
    yield case("median", f())
    yield case("median.dim", apart(3, 4), dim=1)
    yield case("median.dim", scalar([[1.0, float("nan"), 3]]), dim=1)
    yield case("nanmedian", scalar([1.0, float("nan"), 3, 2]))
    yield case("nanmedian.dim", scalar([[1.0, float("nan"), 3, 2]]), dim=1)
    yield case("kthvalue", apart(3, 4), k=2)
    yield case("kthvalue", apart(3, 4), k=3, dim=0, keepdim=True)
    yield case("mode", i(3, 6, below=3), dim=1)
    yield case("mode", i(6, 2, below=3), dim=0, keepdim=True)
    for name in ("var", "std"):
        yield case(f"{name}.correction", f(3, 4), dim=[1])
        yield case(f"{name}.correction", f(3, 4), dim=None, correction=0, keepdim=True)
        yield case(name, f(3, 4), unbiased=False)
    yield case("var_mean.correction", f(3, 4), dim=[0], correction=2)
    yield case("std_mean.correction", f(3, 4), dim=[0, 1])
    yield case("var.correction", f(1), dim=[0])
    for name in ("any", "all"):
        yield case(name, b(2, 3))
        yield case(name, f(0))
        yield case(f"{name}.dim", f(2, 3), dim=1)
        yield case(f"{name}.dims", b(2, 3, 2), dim=[0, 2], keepdim=True)
        yield case(f"{name}.dim", i(2, 3, below=2, dtype=U8), dim=0)
    yield case("count_nonzero.dim_IntList", i(2, 3, below=2), dim=[1])
    yield case("logsumexp", f(2, 3), dim=[1])
    yield case("logsumexp", scalar([[-INF, -INF], [INF, 1.0]]), dim=[1], keepdim=True)
    for order in (2, 1, 0, 3, 0.5, -1, INF, -INF):
        yield case(
            "linalg_vector_norm",
            f(2, 3, low=0.125),
            ord=order if abs(order) < 9 else str(order),
            dim=[1],
        )
    yield case("linalg_vector_norm", f(2, 3))
    yield case("linalg_vector_norm", f(2, 3, dtype=BF16), dtype="f32", keepdim=True)
    yield case("norm.Scalar", f(2, 3), p=2)
    yield case("norm.ScalarOpt_dim", f(2, 3), p=None, dim=[0])
    yield case("norm.ScalarOpt_dim", f(2, 3), p=1, dim=[0], keepdim=True)


def scans():
    for name in ("cumsum", "cumprod"):
        yield case(name, f(2, 3), dim=1)
        yield case(name, i(3, 2), dim=0)
        yield case(name, f(), dim=0)
        yield case(name, f(3, dtype=BF16), dim=0, dtype="f32")
    yield case("cumsum_", f(2, 3), dim=-1)
    yield case("logcumsumexp", f(3, 2), dim=0)
    for name in ("cummax", "cummin"):
        yield case(name, f(3, 4, high=-1), dim=1)
        yield case(name, scalar([1.0, float("nan"), 3]), dim=0)
    for descending in (False, True):
        yield case("sort", apart(3, 4), dim=1, descending=descending)
        yield case("sort.stable", i(3, 4, below=3), dim=0, descending=descending, stable=True)
        yield case("argsort", apart(3, 4), descending=descending)
    yield case("sort", scalar([1.0, float("nan"), 3, -INF]))
    yield case("sort", f())
    yield case("topk", apart(3, 4), k=2)
    yield case("topk", apart(3, 4), k=2, dim=0, largest=False)
    yield case("topk.values", apart(3, 4), f(3, 1), i(3, 1), k=1)


def softmaxes():
    for name in ("_softmax", "_log_softmax"):
        yield case(name, f(2, 3), dim=-1, half_to_float=False)
        yield case(name, f(2, 3, 2), dim=1, half_to_float=False)
        yield case(name, f(2, 3, dtype=BF16), dim=0, half_to_float=False)
    yield case("softmax.int", f(2, 3, dtype=F16), dim=1, dtype="f32")
    yield case("log_softmax.int", f(3), dim=0)
    yield case("softmax.int", f(2, 0), dim=1)
    yield case("_safe_softmax", scalar([[-INF, -INF], [0.0, -INF]]), dim=1)
    yield case(
        "_softmax_backward_data", f(2, 3), torch.softmax(f(2, 3), 1), dim=1, input_dtype="f32"
    )
    yield case(
        "_log_softmax_backward_data",
        f(3, 2),
        torch.log_softmax(f(3, 2), 0),
        dim=0,
        input_dtype="f32",
    )


def norms():
    for shape in ([3], [2, 3]):
        w, bias = f(*shape), f(*shape)
        x = f(2, 2, 3)
        yield case("native_layer_norm", x, w, bias, normalized_shape=shape, eps=1e-5)
        out, mean, rstd = torch.native_layer_norm(x, shape, w, bias, 1e-5)
        for mask in ([True, True, True], [True, False, True]):
            yield case(
                "native_layer_norm_backward",
                f(2, 2, 3),
                x,
                mean,
                rstd,
                w,
                bias,
                normalized_shape=shape,
                output_mask=mask,
            )
        yield case("native_layer_norm", x, None, None, normalized_shape=shape, eps=1e-3)
        yield case(
            "native_layer_norm_backward",
            f(2, 2, 3),
            x,
            mean,
            rstd,
            None,
            None,
            normalized_shape=shape,
            output_mask=[True, False, False],
        )
        yield case("_fused_rms_norm", x, w, normalized_shape=shape, eps=1e-5)
        yield case("_fused_rms_norm", x.bfloat16(), w.bfloat16(), normalized_shape=shape)
        yield case("rms_norm", x, w, normalized_shape=shape)
    yield case("layer_norm", f(2, 4), f(4), normalized_shape=[4])
    yield case(
        "native_layer_norm",
        f(2, 4, dtype=BF16),
        f(4, dtype=BF16),
        f(4, dtype=BF16),
        normalized_shape=[4],
        eps=1e-5,
    )
    yield case("native_layer_norm", f(0, 4), f(4), f(4), normalized_shape=[4], eps=1e-5)
    x, w = f(2, 3), f(3)
    _, rstd = torch.ops.aten._fused_rms_norm(x, [3], w, 1e-5)

    def by_autograd(grad, x, _, w):
        x.requires_grad_(), w.requires_grad_()
        return torch.autograd.grad(torch.rms_norm(x, [3], w, 1e-5), [x, w], grad)

    yield case(
        "_fused_rms_norm_backward",
        f(2, 3),
        x,
        rstd,
        w,
        normalized_shape=[3],
        output_mask=[True, True],
        by=by_autograd,
    )
    x, w, bias = f(2, 4, 3), f(4), f(4)
    sizes = {"N": 2, "C": 4, "HxW": 3, "group": 2}
    yield case("native_group_norm", x, w, bias, **sizes, eps=1e-5)
    out, mean, rstd = torch.native_group_norm(x, w, bias, 2, 4, 3, 2, 1e-5)
    yield case(
        "native_group_norm_backward",
        f(2, 4, 3),
        x,
        mean,
        rstd,
        w,
        **sizes,
        output_mask=[True, True, True],
    )
    yield case("native_group_norm", f(2, 4, 2, 2), None, None, N=2, C=4, HxW=4, group=1, eps=1e-5)
    yield case("group_norm", f(2, 4, 3), w, bias, num_groups=4)


def embeddings():
    yield case("embedding", f(5, 3), i(2, 2))
    yield case("embedding", f(5, 2, dtype=BF16), i())
    yield case("embedding", f(5, 2), i(0, 2))
    for padding, scales in ((-1, False), (1, False), (-1, True)):
        yield case(
            "embedding_dense_backward",
            f(2, 3, 2),
            i(2, 3, below=4),
            num_weights=5,
            padding_idx=padding,
            scale_grad_by_freq=scales,
        )


def attentions():
    q, k, v = f(1, 2, 3, 4), f(1, 2, 5, 4), f(1, 2, 5, 4)
    cpu = "_scaled_dot_product_flash_attention_for_cpu"
    yield case("scaled_dot_product_attention", q, k, v)
    yield case("scaled_dot_product_attention", q, k, v, f(3, 5))
    yield case(
        "scaled_dot_product_attention",
        q,
        k,
        v,
        torch.tensor([[True, False, True, True, False]]),
        scale=0.25,
    )
    yield case("scaled_dot_product_attention", q, k, v, is_causal=True)
    yield case(
        "scaled_dot_product_attention", f(1, 4, 2, 2), f(1, 2, 2, 2), f(1, 2, 2, 2), enable_gqa=True
    )
    yield case("scaled_dot_product_attention", f(3, 4), f(5, 4), f(5, 4))
    yield case(cpu, q, k, v, is_causal=True)
    yield case(cpu, q.double(), k.double(), v.double())
    yield case(cpu, q.bfloat16(), k.bfloat16(), v.bfloat16())
    out, sums = getattr(torch.ops.aten, cpu)(q, k, v, is_causal=True)
    yield case(cpu + "_backward", f(1, 2, 3, 4), q, k, v, out, sums, dropout_p=0.0, is_causal=True)
    bias = f(1, 2, 3, 5)
    out, sums = getattr(torch.ops.aten, cpu)(q, k, v, attn_mask=bias, scale=0.5)
    yield case(cpu, q, k, v, bias, scale=0.5)
    yield case(
        cpu + "_backward",
        f(1, 2, 3, 4),
        q,
        k,
        v,
        out,
        sums,
        bias,
        dropout_p=0.0,
        is_causal=False,
        scale=0.5,
    )


def losses():
    for reduction in (0, 1, 2):
        x, target, w = f(4, 3), torch.tensor([0, 2, 1, 2]), f(3, low=0.5)
        own = {"reduction": reduction, "ignore_index": 1}
        yield case("nll_loss_forward", x, target, w, **own)
        loss, total = torch.ops.aten.nll_loss_forward(x, target, w, reduction, 1)
        yield case("nll_loss_backward", f(4) if reduction == 0 else f(), x, target, w, total, **own)
        yield case("nll_loss_forward", x, target, None, reduction=reduction, ignore_index=-100)
        yield case("cross_entropy_loss", x, target, w, **own)
        yield case("cross_entropy_loss", x, target, None, reduction=reduction, label_smoothing=0.25)
        x = f(2, 3, 2, 1)
        target = i(2, 2, 1, below=3)
        yield case("nll_loss2d_forward", x, target, None, reduction=reduction, ignore_index=-100)
        for name in ("mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss"):
            yield case(name, f(2, 3), f(2, 3), reduction=reduction)
        yield case(
            "mse_loss_backward",
            f(2, 3) if reduction == 0 else f(),
            f(2, 3),
            f(2, 3),
            reduction=reduction,
        )
    yield case("nll_loss_forward", f(3), i(below=3), None, reduction=1, ignore_index=-100)
    yield case("cross_entropy_loss", f(2, 3), torch.softmax(f(2, 3), 1))
    yield case("cross_entropy_loss", f(2, 3, 2), i(2, 2, below=3))


def cases():
    for group in (
        *(pointwise.unary, pointwise.binary, pointwise.ternary, pointwise.backward),
        *(matrices, reductions, scans, softmaxes, norms, embeddings, attentions, losses),
        *(shapes.views, shapes.cuts, shapes.indices, shapes.convolutions, shapes.lists),
        torch_image_cases.images,
        torch_carried_cases.carried,
    ):
        yield from group()
