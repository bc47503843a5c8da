# SPDX-License-Identifier: BSD-3-Clause
"""DTensor.redistribute by this library's plans, over the existing process groups.

>>> from reshard.torch import redistribute
>>> redistribute(dtensor, [Replicate(), Shard(1)])

Forward and backward, on one mesh or between two; equal requests are planned once.
"""

import copy
import functools
import warnings
from typing import Any, Dict, NamedTuple, Optional, Tuple

import torch
from torch.distributed._functional_collectives import _are_we_tracing
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta

from ._library import InputError
from ._torch_lanes import backward_lane, lane_of_thread
from ._torch_moves import Move, NotOurs, move_of, moved
from ._torch_patch import patched, theirs
from ._torch_placements import backward_placements, placements_of

__all__ = ["plan_of", "redistribute", "redistributing"]


def plan_of(dtensor, placements, device_mesh=None, **options):
    """The plan that `redistribute` runs; options are those of reshard.plan."""
    mesh = device_mesh or dtensor.device_mesh
    target = placements_of(placements, dtensor.ndim, mesh.ndim)
    return _move(dtensor, mesh, target, dtensor.dtype, tuple(sorted(options.items()))).plan


def redistribute(dtensor, placements, device_mesh=None, *, lane=None, **options):
    """`dtensor` with these placements, on `device_mesh` or its own mesh; twice differentiable.

    Every rank of both meshes must call it, with a DTensor of the same global shape. Messages go
    over separate process groups: on CPUs over gloo, or over the mesh's own groups if they are
    MPI's, with the bits of `reshard simulate`; on GPUs as batches of messages and collectives of
    NCCL. Options are reshard.plan's: planner, topology, memory_limit.

    Several threads of a rank may call it at once. On one mesh the calls of a thread meet those of
    the thread started at the same place on the other ranks; `lane`, a text equal on all ranks,
    distinguishes calls where that is not known, as in a pool of threads.

    What only torch supports (a placement that a masked lookup left, a tensor that is traced)
    DTensor redistributes itself; a warning says so once. Raises reshard.InputError if the request
    is wrong or cannot be met.
    """
    if not isinstance(dtensor, DTensor):
        raise InputError(f"dtensor: expected a DTensor, found {type(dtensor).__name__}")
    if not isinstance(device_mesh, (DeviceMesh, type(None))):
        raise InputError(f"device_mesh: expected a DeviceMesh, found {type(device_mesh).__name__}")
    if lane is not None and not isinstance(lane, str):
        raise InputError(f"lane: expected a string, equal on all ranks, found {lane!r}")
    if _in_torch_compile():
        return _uncompiled(_ours)(dtensor, placements, device_mesh, lane, options)
    return _ours(dtensor, placements, device_mesh, lane, options)


def _ours(dtensor, placements, device_mesh, lane, options):
    asked = _Asked(lane or lane_of_thread(), tuple(sorted(options.items())) if options else ())
    return _routed(dtensor, device_mesh, placements, asked)


def redistributing(*, lane=None, **options):
    """Within this context DTensor.redistribute runs our plans, in this thread or task only. What
    they cannot do is left to DTensor; a warning says so once. Results are complete on return, also
    with async_op.

    >>> with reshard.torch.redistributing(planner="packed"):
    ...     y = x.redistribute(placements=[Replicate(), Shard(1)])
    """

    options = tuple(sorted(options.items()))

    def run(self, mesh, placements, async_op=False, forward_dtype=None, backward_dtype=None):
        asked = _Asked(lane or lane_of_thread(), options, forward_dtype, backward_dtype, True)
        return _routed(self, mesh, placements, asked)

    return patched(run)


class _Asked(NamedTuple):
    lane: str
    options: Tuple[Tuple[str, Any], ...]
    forward_dtype: Optional[torch.dtype] = None  # of what is moved and returned
    backward_dtype: Optional[torch.dtype] = None
    in_place_of_theirs: bool = False  # anything that DTensor can run must still run


def _in_torch_compile():
    """True if traced, or called from compiled code: then compilation would continue inside."""
    return torch.compiler.is_compiling() or (
        torch._C._dynamo.eval_frame.get_eval_frame_callback() is not None
    )


@functools.lru_cache(maxsize=None)
def _uncompiled(function):
    return torch.compiler.disable(function)


# ---- what is known of a request


class _Prepared(NamedTuple):
    target: Tuple[Any, ...]  # placements
    move: Optional[Move]  # None if nothing moves
    theirs: Optional[str]  # why DTensor runs it itself
    spec: Any  # of the result, except for its mesh


_prepared: Dict[Any, _Prepared] = {}
_MOST_PREPARED = 4096


def _prepare(dtensor, device_mesh, placements, asked):
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
    same = mesh == dtensor.device_mesh and target == tuple(dtensor.placements)
    strides = dtensor.stride() if same else _dense_strides(dtensor.shape)
    spec = DTensorSpec(mesh, target, tensor_meta=TensorMeta(dtensor.shape, strides, dtype))
    if same and dtype == dtensor.dtype:
        return _Prepared(target, None, None, copy.copy(dtensor._spec))
    if same:
        return _Prepared(target, None, None, spec)
    try:
        return _Prepared(target, _move(dtensor, mesh, target, dtype, asked.options), None, spec)
    except InputError as error:
        if mesh != dtensor.device_mesh or not _is_theirs(error, dtensor, mesh, target, asked):
            raise
        return _Prepared(target, None, str(error), spec)


def _move(dtensor, mesh, target, dtype, options):
    spec = dtensor._spec
    order = getattr(spec, "shard_order", None)
    if order and order != spec.compute_default_shard_order(spec.placements):
        raise NotOurs(f"dtensor: expected shards in the order of the axes, found the order {order}")
    return move_of(
        tuple(dtensor.shape),
        dtype,
        dtensor.device_mesh,
        tuple(dtensor.placements),
        mesh,
        target,
        options,
    )


def _is_theirs(error, dtensor, mesh, target, asked):
    if isinstance(error, NotOurs) or not asked.in_place_of_theirs:
        return isinstance(error, NotOurs)
    if not asked.options:
        return True
    try:
        _move(dtensor, mesh, target, asked.forward_dtype or dtensor.dtype, ())
    except InputError:
        return True
    return False  # the options cannot be met, for instance a memory limit


_said = set()


def _say_once(why):
    if why not in _said:
        _said.add(why)
        warnings.warn(f"reshard: DTensor's own redistribute runs instead: {why}", stacklevel=4)


# ---- forward and backward


def _is_traced(local):
    plain = type(local) is torch.Tensor and not torch._C._len_torch_dispatch_stack()
    return not plain and _are_we_tracing()


def _routed(dtensor, device_mesh, placements, asked):
    if _is_traced(dtensor._local_tensor):
        target = placements_of(
            placements, dtensor.ndim, (device_mesh or dtensor.device_mesh).ndim
        )
        return _by_dtensor(dtensor, device_mesh, target, asked, "it is traced")
    prepared = _prepare(dtensor, device_mesh, placements, asked)
    if prepared.theirs is not None:
        return _by_dtensor(dtensor, device_mesh, prepared.target, asked, prepared.theirs)
    if dtensor.requires_grad and torch.is_grad_enabled():
        return _Redistribute.apply(dtensor, device_mesh, prepared, asked)
    return _moved(dtensor, device_mesh, prepared, asked)


def _by_dtensor(dtensor, device_mesh, target, asked, why):
    _say_once(why)
    dtypes = {"forward_dtype": asked.forward_dtype, "backward_dtype": asked.backward_dtype}
    dtypes = {name: dtype for name, dtype in dtypes.items() if dtype is not None}
    return theirs(dtensor, device_mesh, target, **dtypes)


def _moved(dtensor, device_mesh, prepared, asked):
    local, mesh = dtensor._local_tensor, dtensor._spec.mesh
    to_mesh = device_mesh or mesh
    if asked.forward_dtype is not None:
        local = local.to(asked.forward_dtype)
    if prepared.move is not None:
        local = moved(prepared.move, local, mesh, to_mesh, asked.lane)
    elif local is dtensor._local_tensor:
        local = local.view_as(local)
    spec = prepared.spec
    if spec.mesh is not to_mesh:  # equal, but with other groups
        spec = copy.copy(spec)
        spec.mesh = to_mesh
    return DTensor(local, spec, requires_grad=False)


class _Redistribute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, dtensor, device_mesh, prepared, asked):
        ctx.mesh, ctx.placements, ctx.dtype = dtensor.device_mesh, dtensor.placements, dtensor.dtype
        ctx.asked = asked
        return _moved(dtensor, device_mesh, prepared, asked)

    @staticmethod
    def backward(ctx, gradient):
        same_mesh = ctx.mesh == gradient.device_mesh
        kept = backward_placements(ctx.placements, gradient.placements, same_mesh)
        asked = ctx.asked._replace(
            lane=backward_lane(ctx.asked.lane),
            forward_dtype=_unless(ctx.asked.backward_dtype or ctx.dtype, gradient.dtype),
        )
        found = _routed(gradient, ctx.mesh, kept, asked)
        return found if found.dtype == ctx.dtype else found.to(ctx.dtype), None, None, None


def _unless(dtype, same):
    return None if dtype == same else dtype


def _dense_strides(shape):
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))
