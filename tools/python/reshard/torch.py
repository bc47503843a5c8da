# SPDX-License-Identifier: BSD-3-Clause
"""DTensor.redistribute by our plans, over the process group that is there.

>>> from reshard.torch import redistribute
>>> redistribute(dtensor, [Replicate(), Shard(1)])

Forward and backward, on one mesh or across two; requests are planned once.
"""

import functools
import sys
import warnings
from typing import Any, Dict, NamedTuple, Optional

import torch
from torch.distributed._functional_collectives import _are_we_tracing
from torch.distributed.tensor import DTensor

from ._library import InputError
from ._torch_lanes import backward_lane, lane_of_thread
from ._torch_moves import NotOurs, move_of, moved
from ._torch_patch import patched, theirs
from ._torch_placements import backward_placements, placements_of

__all__ = ["plan_of", "redistribute", "redistributing"]


def plan_of(dtensor, placements, device_mesh=None, **options):
    """The plan that `redistribute` runs, of reshard.plan's options."""
    mesh = device_mesh or dtensor.device_mesh
    target = placements_of(placements, dtensor.ndim, mesh.ndim)
    return _move(dtensor, mesh, target, dtensor.dtype, options).plan


def redistribute(dtensor, placements, device_mesh=None, *, lane=None, **options):
    """`dtensor` as `placements` say, on `device_mesh` or its own mesh; differentiable twice.

    Every rank of both meshes calls it, with a DTensor of the same global shape. What travels goes
    over process groups of its own: on processors as messages of gloo, or over the mesh's of MPI,
    with the bits of `reshard simulate`; on GPUs as batches of messages and collectives of NCCL.
    Options are reshard.plan's: planner, topology, memory_limit.

    Threads of a rank may call it at once. On one mesh the calls of a thread meet those of the
    thread that was started in the same place on the other ranks; `lane`, a text equal on all ranks,
    tells calls apart where that is not known, as in a pool of threads.

    What torch alone knows (a placement that a masked lookup left, a tensor that is traced) DTensor
    redistributes itself, which is said once. Raises reshard.InputError where the request is wrong
    or cannot be met.
    """
    if not isinstance(dtensor, DTensor):
        raise InputError(f"dtensor: expected a DTensor, found {type(dtensor).__name__}")
    if lane is not None and not isinstance(lane, str):
        raise InputError(f"lane: expected a text, equal on all ranks, found {lane!r}")
    asked = _Asked(lane or lane_of_thread(), options)
    return _uncompiled(_routed)(dtensor, device_mesh, placements, asked)


def redistributing(*, lane=None, **options):
    """Within it DTensor.redistribute runs our plans, in this thread or task alone; what they cannot
    do stays DTensor's, which is said once. Results are there when it returns, also of async_op.

    >>> with reshard.torch.redistributing(planner="packed"):
    ...     y = x.redistribute(placements=[Replicate(), Shard(1)])
    """

    def run(self, mesh, placements, async_op=False, forward_dtype=None, backward_dtype=None):
        if _are_we_tracing():
            dtypes = {"forward_dtype": forward_dtype, "backward_dtype": backward_dtype}
            return theirs(self, mesh, placements, async_op=async_op, **dtypes)
        asked = _Asked(lane or lane_of_thread(), options, forward_dtype, backward_dtype, True)
        return _routed(self, mesh, placements, asked)

    return patched(run)


class _Asked(NamedTuple):
    lane: str
    options: Dict[str, Any]
    forward_dtype: Optional[torch.dtype] = None  # of what is moved and given
    backward_dtype: Optional[torch.dtype] = None
    in_place_of_theirs: bool = False  # whatever DTensor runs shall run


def _uncompiled(function):
    """Left out of what torch.compile traces, once there is something that could trace it."""
    if "torch._dynamo" not in sys.modules:
        return function
    return _disabled(function)


@functools.lru_cache(maxsize=None)
def _disabled(function):
    return torch.compiler.disable(function)


# ---- ours or DTensor's own


def _routed(dtensor, device_mesh, placements, asked):
    mesh = device_mesh or dtensor.device_mesh
    target = placements_of(placements, dtensor.ndim, mesh.ndim)
    try:
        move = _move(dtensor, mesh, target, asked.forward_dtype or dtensor.dtype, asked.options)
    except InputError as error:
        if mesh != dtensor.device_mesh or not _is_theirs(error, dtensor, mesh, target, asked):
            raise
        _say_once(str(error))
        dtypes = {"forward_dtype": asked.forward_dtype, "backward_dtype": asked.backward_dtype}
        dtypes = {name: dtype for name, dtype in dtypes.items() if dtype is not None}
        return theirs(dtensor, mesh, target, **dtypes)
    return _Redistribute.apply(dtensor, mesh, target, move, asked)


def _move(dtensor, mesh, target, dtype, options):
    """None where nothing moves."""
    if mesh == dtensor.device_mesh and target == tuple(dtensor.placements) and not options:
        return None
    if _are_we_tracing():
        raise NotOurs("dtensor: expected one that is not traced")
    spec = dtensor._spec
    order = getattr(spec, "shard_order", None)
    if order and order != spec.compute_default_shard_order(spec.placements):
        raise NotOurs(f"dtensor: expected shards in the order of axes, found the order {order}")
    return move_of(
        tuple(dtensor.shape),
        dtype,
        dtensor.device_mesh,
        tuple(dtensor.placements),
        mesh,
        target,
        tuple(sorted(options.items())),
    )


def _is_theirs(error, dtensor, mesh, target, asked):
    if isinstance(error, NotOurs) or not asked.in_place_of_theirs:
        return isinstance(error, NotOurs)
    if not asked.options:
        return True
    try:
        _move(dtensor, mesh, target, asked.forward_dtype or dtensor.dtype, {})
    except InputError:
        return True
    return False  # the options cannot be met, such as a limit of memory


_said = set()


def _say_once(why):
    if why not in _said:
        _said.add(why)
        warnings.warn(f"reshard: DTensor's own redistribute runs instead: {why}", stacklevel=4)


# ---- forward and backward


class _Redistribute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, dtensor, mesh, target, move, asked):
        ctx.mesh, ctx.placements, ctx.dtype = dtensor.device_mesh, dtensor.placements, dtensor.dtype
        ctx.asked = asked
        local, strides = dtensor._local_tensor, dtensor.stride()
        if asked.forward_dtype is not None:
            local = local.to(asked.forward_dtype)
        if mesh != dtensor.device_mesh or target != tuple(dtensor.placements):
            local = moved(move, local, dtensor.device_mesh, mesh, asked.lane)
            strides = _dense_strides(dtensor.shape)
        elif local is dtensor._local_tensor:
            local = local.view_as(local)
        return DTensor.from_local(
            local, mesh, target, run_check=False, shape=dtensor.shape, stride=strides
        )

    @staticmethod
    def backward(ctx, gradient):
        same_mesh = ctx.mesh == gradient.device_mesh
        kept = backward_placements(ctx.placements, gradient.placements, same_mesh)
        asked = ctx.asked._replace(
            lane=backward_lane(ctx.asked.lane),
            forward_dtype=_unless(ctx.asked.backward_dtype or ctx.dtype, gradient.dtype),
        )
        found = _routed(gradient, ctx.mesh, kept, asked)
        return found.to(ctx.dtype), None, None, None, None


def _unless(dtype, same):
    return None if dtype == same else dtype


def _dense_strides(shape):
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))
