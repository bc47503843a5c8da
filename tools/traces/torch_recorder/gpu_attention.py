# SPDX-License-Identifier: BSD-3-Clause
"""Attention as on a GPU, on a machine without one: the kernels that scaled_dot_product_attention
would call there, implemented for CPU tensors. DTensor has rules for these kernels but none for the
CPU's own.

As on a GPU for half precision: flash if there is no mask, which accepts fewer heads of keys and
values; else memory-efficient, with a mask that is a bias expanded to all scores, and grouped heads
that are repeated.
"""

import math

import torch
from torch.distributed.tensor import DTensor
from torch.utils._pytree import tree_map_only

aten = torch.ops.aten

# The kernels require the width of heads and the rows of the bias to be multiples of these.
WIDTH, ROWS = 8, 16


def padded(tensor, multiple):
    return torch.nn.functional.pad(tensor, (0, -tensor.shape[-1] % multiple))


def as_bias(mask, query, key):
    if mask.dtype == torch.bool:
        nothing = torch.scalar_tensor(-math.inf, dtype=query.dtype)
        mask = torch.where(mask, 0.0, nothing)
    length = mask.shape[-1]
    if length % ROWS:
        mask = padded(mask, ROWS)[..., :length]
    return mask.expand(*query.shape[:3], key.shape[2])


def on_gpu(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **others):
    """scaled_dot_product_attention with four dims. `others`: scale, enable_gqa."""
    scale, groups = others.get("scale"), query.shape[1] // key.shape[1]
    if attn_mask is None:
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        heads = [padded(each, WIDTH) if each.shape[-1] % WIDTH else each for each in (query, key)]
        heads.append(padded(value, WIDTH) if value.shape[-1] % WIDTH else value)
        flash = aten._scaled_dot_product_flash_attention
        out = flash(*heads, dropout_p, is_causal, False, scale=scale)[0]
        return out if out.shape[-1] == value.shape[-1] else out[..., : value.shape[-1]]
    if groups > 1:
        key, value = (each.repeat_interleave(groups, 1) for each in (key, value))
    learns = torch.is_grad_enabled() and any(each.requires_grad for each in (query, key, value))
    bias = as_bias(attn_mask, query, key)
    efficient = aten._scaled_dot_product_efficient_attention
    return efficient(query, key, value, bias, learns, dropout_p, is_causal, scale=scale)[0]


def is_meant(query, key, value, *_, enable_gqa=False, **others):
    """Whether a GPU would use one of its kernels; errors in anything else are left to PyTorch."""
    if not isinstance(query, DTensor) or any(each.dim() != 4 for each in (query, key, value)):
        return False
    heads, groups = query.shape[1], key.shape[1]
    same = heads == groups or (enable_gqa and groups > 0 and heads % groups == 0)
    return same and query.is_floating_point() and key.shape[:3] == value.shape[:3]


# Kernels -----------------------------------------------------------------------------------------


def like_gpu(func, *args, **kwargs):
    """Outputs with the shapes and strides that the kernel's meta function gives."""
    given = tree_map_only(torch.Tensor, lambda each: each.to("meta"), (args, kwargs))

    def made(each):
        return torch.empty_strided(each.shape, each.stride(), dtype=each.dtype).zero_()

    return tree_map_only(torch.Tensor, made, func(*given[0], **given[1]))


def scores_of(query, key, bias, is_causal, scale):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query @ key.transpose(-2, -1) * scale
    if bias is not None:
        scores = scores + bias
    if is_causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -math.inf)
    return scores, scale


def repeated(query, *tensors):
    heads, groups = query.shape[1], tensors[0].shape[1]
    if heads % max(groups, 1):
        raise RuntimeError(
            "Number of heads in key/value must divide number of heads in query, found "
            f"{groups} and {heads}"
        )
    times = heads // max(groups, 1)
    return [each.repeat_interleave(times, 1) if times > 1 else each for each in tensors]


def attend(query, key, value, bias, is_causal, scale):
    """Output and logsumexp."""
    key, value = repeated(query, key, value)
    scores, _ = scores_of(query.float(), key.float(), bias, is_causal, scale)
    sums = scores.logsumexp(-1)
    weights = torch.softmax(scores, -1).nan_to_num(0.0)
    return weights @ value.float(), sums


def attend_backward(grad, query, key, value, bias, out, is_causal, scale):
    """Gradients of query, key, value and scores."""
    groups = key.shape[1]
    keys, values = (each.float() for each in repeated(query, key, value))
    query, grad = query.float(), grad.float()
    scores, scale = scores_of(query, keys, bias, is_causal, scale)
    weights = torch.softmax(scores, -1).nan_to_num(0.0)
    own = (grad * out.float()).sum(-1, keepdim=True)
    slopes = weights * (grad @ values.transpose(-2, -1) - own)

    def of_groups(each):
        return each.unflatten(1, (groups, -1)).sum(2) if each.shape[1] != groups else each

    of_keys, of_values = slopes.transpose(-2, -1) @ query * scale, weights.transpose(-2, -1) @ grad
    return slopes @ keys * scale, of_groups(of_keys), of_groups(of_values), slopes


def flash(query, key, value, dropout_p=0.0, is_causal=False, debug=False, *, scale=None):
    func = aten._scaled_dot_product_flash_attention.default
    made = like_gpu(func, query, key, value, dropout_p, is_causal, debug, scale=scale)
    for into, found in zip(made, attend(query, key, value, None, is_causal, scale)):
        into.copy_(found)
    return made


def flash_backward(grad, query, key, value, out, sums, *others, scale=None):
    func = aten._scaled_dot_product_flash_attention_backward.default
    made = like_gpu(func, grad, query, key, value, out, sums, *others, scale=scale)
    is_causal = others[5]
    for into, found in zip(
        made, attend_backward(grad, query, key, value, None, out, is_causal, scale)
    ):
        into.copy_(found)
    return made


def efficient(query, key, value, bias, wants_sums, dropout_p=0.0, is_causal=False, *, scale=None):
    func = aten._scaled_dot_product_efficient_attention.default
    given = (query, key, value, bias, wants_sums, dropout_p, is_causal)
    made = like_gpu(func, *given, scale=scale)
    out, sums = attend(query, key, value, bias, is_causal, scale)
    made[0].copy_(out)
    if wants_sums:
        made[1][..., : sums.shape[-1]].copy_(sums)
    return made


def efficient_backward(grad, query, key, value, bias, out, *others, scale=None):
    func = aten._scaled_dot_product_efficient_attention_backward.default
    wanted, is_causal = others[4], others[5] if len(others) > 5 else False
    made = like_gpu(func, grad, query, key, value, bias, out, *others, scale=scale)
    found = attend_backward(grad, query, key, value, bias, out, is_causal, scale)
    for into, each, wants in zip(made, found, wanted):
        if wants and into is not None:
            into.copy_(each.sum_to_size(into.shape))
    return made


KERNELS = {
    "_scaled_dot_product_flash_attention": flash,
    "_scaled_dot_product_flash_attention_backward": flash_backward,
    "_scaled_dot_product_efficient_attention": efficient,
    "_scaled_dot_product_efficient_attention_backward": efficient_backward,
}


def install():
    """Permanent, as this process exists only to record."""
    library = torch.library.Library("aten", "IMPL")
    for name, kernel in KERNELS.items():
        library.impl(name, kernel, "CPU")
    return library
