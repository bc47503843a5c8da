# SPDX-License-Identifier: BSD-3-Clause
"""Converts texts, our placements and torch's own to the placements that DTensor keeps."""

import functools
import re

from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor.placement_types import Placement, _StridedShard

from . import _plan
from ._layouts import placements_text
from ._library import InputError

_KNOWN = (Shard, Replicate, Partial, _StridedShard)
_ONE = re.compile(r"R|_S\((\d+), (\d+)\)|S\((\d+)\)(\[\d+\])?|P\((\w+)\)")


def placements_of(placements, dims, axes):
    """A tuple of torch's placements, one per mesh axis, with dims counted from the first."""
    if isinstance(placements, Placement):
        placements = (placements,)
    if isinstance(placements, (list, tuple)):
        if all(isinstance(each, Placement) for each in placements):
            return tuple(_positive(each, dims) for each in placements)
        if not placements:
            return ()
    return _read(placements_text(placements, dims), dims, axes)


def _positive(placement, dims):
    dim = getattr(placement, "dim", 0)
    if dim is None or dim >= 0:
        return placement
    if type(placement) is _StridedShard:
        return _StridedShard(dim + dims, split_factor=placement.split_factor)
    return Shard(dim + dims) if type(placement) is Shard else placement


@functools.lru_cache(maxsize=1024)
def _read(text, dims, axes):
    """Reads a text through the library, which writes it back in the one form that is parsed here.
    """
    mesh = "x".join("1" * axes)
    read = _plan.plan((1,) * dims, "i64", mesh, text, text, planner="p2p").request
    written = read.split(" ", 1)[1].rsplit(" on ", 1)[0]
    return tuple(map(_placement, _ONE.finditer(written)))


def _placement(found):
    strided, factor, dim, order, op = found.groups()
    if order is not None:
        raise InputError(
            f"placements: expected torch's, without an order of axes, found '{found[0]}'"
        )
    if strided is not None:
        return _StridedShard(int(strided), split_factor=int(factor))
    if dim is not None:
        return Shard(int(dim))
    return Replicate() if op is None else Partial(op)


def unknown_kind(placements):
    """The kind of the first placement that only torch knows, such as the one that a masked lookup
    leaves; None if there is none."""
    for placement in placements:
        if type(placement) not in _KNOWN:
            return type(placement).__name__
    return None


def backward_placements(before, now, same_mesh):
    """The placements of a gradient. The gradient of addends is the same for all of them, so it is
    replicated, as in DTensor; but if the gradient itself has addends on that axis, they are moved
    as they are."""
    if not same_mesh:
        return tuple(Replicate() if each.is_partial() else each for each in before)
    return tuple(
        Replicate() if each.is_partial() and not there.is_partial() else each
        for each, there in zip(before, now)
    )
