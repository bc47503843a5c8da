# SPDX-License-Identifier: BSD-3-Clause
"""What is known of a DTensor's move before anything moves: the placements, the plan, the spec of
the result, and whether DTensor itself must redistribute it."""

import copy
from typing import Any, Dict, NamedTuple, Optional, Tuple

import torch
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta

from ._library import InputError
from ._torch_moves import Move, MoveRequest, NotOurs, move_of
from ._torch_placements import placements_of


class Asked(NamedTuple):
    lane: str
    options: Tuple[Tuple[str, Any], ...]
    forward_dtype: Optional[torch.dtype] = None  # of what is moved and returned
    backward_dtype: Optional[torch.dtype] = None
    in_place_of_theirs: bool = False  # anything that DTensor can run must still run


class Prepared(NamedTuple):
    target: Tuple[Any, ...]  # placements
    move: Optional[Move]  # None if nothing moves
    theirs: Optional[str]  # why DTensor runs it itself
    spec: Any  # of the result, except for its mesh


_prepared: Dict[Any, Prepared] = {}
_MOST_PREPARED = 4096


def prepare(dtensor, device_mesh, placements, asked) -> Prepared:
    """Cached by the DTensor's spec, which has its hash ready."""
    if isinstance(placements, list):
        placements = tuple(placements)
    key = (
        dtensor._spec, device_mesh, placements, asked.options, asked.forward_dtype,
        asked.in_place_of_theirs,
    )  # fmt: skip
    try:
        found = _prepared.get(key)
    except TypeError:  # from lists within lists, which are not placements
        placements_of(placements, dtensor.ndim, dtensor.device_mesh.ndim)
        raise InputError("options: expected hashable values, such as strings") from None
    if found is None:
        found = _newly_prepared(dtensor, device_mesh or dtensor.device_mesh, placements, asked)
        if len(_prepared) >= _MOST_PREPARED:
            _prepared.clear()
        _prepared[key] = found
    return found


def _newly_prepared(dtensor, mesh, placements, asked):
    target = placements_of(placements, dtensor.ndim, mesh.ndim)
    dtype = asked.forward_dtype or dtensor.dtype
    if stays(dtensor, mesh, target):
        if dtype == dtensor.dtype:
            return Prepared(target, None, None, copy.copy(dtensor._spec))
        return Prepared(target, None, None, _spec(dtensor, mesh, target, dtype, dtensor.stride()))
    spec = moved_spec(dtensor, mesh, target, dtype)
    try:
        move = move_of(move_request(dtensor, mesh, target, dtype), asked.options)
        return Prepared(target, move, None, spec)
    except InputError as error:
        if mesh != dtensor.device_mesh or not _is_theirs(error, dtensor, mesh, target, asked):
            raise
        return Prepared(target, None, str(error), spec)


def stays(dtensor, mesh, target):
    return mesh == dtensor.device_mesh and target == tuple(dtensor.placements)


def move_request(dtensor, mesh, target, dtype) -> MoveRequest:
    spec = dtensor._spec
    order = getattr(spec, "shard_order", None)
    if order and order != spec.compute_default_shard_order(spec.placements):
        raise NotOurs(f"dtensor: expected shards in the order of the axes, found the order {order}")
    return MoveRequest(
        tuple(dtensor.shape), dtype, dtensor.device_mesh, tuple(dtensor.placements), mesh, target
    )


def _is_theirs(error, dtensor, mesh, target, asked):
    if isinstance(error, NotOurs) or not asked.in_place_of_theirs:
        return isinstance(error, NotOurs)
    if not asked.options:
        return True
    try:
        dtype = asked.forward_dtype or dtensor.dtype
        move_of(move_request(dtensor, mesh, target, dtype), ())
    except InputError:
        return True
    return False  # the options cannot be met, for instance a memory limit


def moved_spec(dtensor, mesh, target, dtype):
    """Of the result of a move, which is dense."""
    strides, step = [], 1
    for extent in reversed(dtensor.shape):
        strides.append(step)
        step *= max(extent, 1)
    return _spec(dtensor, mesh, target, dtype, tuple(reversed(strides)))


def _spec(dtensor, mesh, target, dtype, strides):
    return DTensorSpec(mesh, target, tensor_meta=TensorMeta(dtensor.shape, strides, dtype))


def on_mesh(spec, mesh):
    """The spec, on a mesh that is equal to its own but may have other groups."""
    if spec.mesh is not mesh:
        spec = copy.copy(spec)
        spec.mesh = mesh
    return spec
