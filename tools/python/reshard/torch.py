# SPDX-License-Identifier: BSD-3-Clause
"""DTensor.redistribute by this library's plans, over the existing process groups.

>>> from reshard.torch import redistribute, redistribute_all
>>> redistribute(dtensor, [Replicate(), Shard(1)])
>>> redistribute_all(model.state_dict(), "RS(0)", generator_mesh)

Forward and backward, on one mesh or between two, one tensor or all of a model's by one plan; equal
requests are planned once.
"""

import functools
from collections.abc import Mapping

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from ._layouts import shown
from ._library import InputError
from ._torch_autograd import routed
from ._torch_jobs import all_routed, job_of, wanted_of
from ._torch_lanes import lane_of_thread
from ._torch_moves import move_of
from ._torch_patch import patched
from ._torch_placements import placements_of
from ._torch_requests import Asked, move_request

__all__ = ["plan_of", "plan_of_all", "redistribute", "redistribute_all", "redistributing"]


def plan_of(dtensor, placements, device_mesh=None, **options):
    """The plan that `redistribute` runs; options are those of reshard.plan."""
    mesh = device_mesh or dtensor.device_mesh
    target = placements_of(placements, dtensor.ndim, mesh.ndim)
    request = move_request(dtensor, mesh, target, dtensor.dtype)
    return move_of(request, tuple(sorted(options.items()))).plan


def plan_of_all(dtensors, placements, device_mesh=None, **options):
    """The plan that `redistribute_all` runs, of the tensors that move."""
    wanted = _wanted(dtensors, placements, device_mesh)
    move = job_of(wanted, tuple(sorted(options.items()))).move
    if move is None:
        raise InputError("dtensors: expected one that moves, found none")
    return move.plan


def redistribute(dtensor, placements, device_mesh=None, *, lane=None, **options):
    """`dtensor` with these placements, on `device_mesh` or its own mesh; twice differentiable.

    Every rank of both meshes must call it, with a DTensor of the same global shape. Messages go
    over separate process groups: on CPUs over gloo, or over the mesh's own groups if they are
    MPI's, with the bits of `reshard simulate`; on GPUs as batches of messages and collectives of
    NCCL. Options are reshard.plan's: planner, topology, memory_limit, extra_memory. free_source is
    refused, as DTensors keep their shards while they are moved.

    Several threads of a rank may call it at once. On one mesh the calls of a thread meet those of
    the thread started at the same place on the other ranks; `lane`, a text equal on all ranks,
    distinguishes calls where that is not known, as in a pool of threads.

    What only torch supports (a placement that a masked lookup left, a tensor that is traced)
    DTensor redistributes itself; a warning says so once. Raises reshard.InputError if the request
    is wrong or cannot be met.
    """
    _require_dtensor("dtensor", dtensor)
    _require_mesh("device_mesh", device_mesh)
    _require_lane(lane)
    if _in_torch_compile():
        return _uncompiled(_ours)(dtensor, placements, device_mesh, lane, options)
    return _ours(dtensor, placements, device_mesh, lane, options)


def redistribute_all(dtensors, placements, device_mesh=None, *, lane=None, **options):
    """All of a dict of DTensors, such as a state dict, by one plan: a dict of the same names.

    placements, device_mesh: a dict by name, or one for all; device_mesh None: each keeps its own.
    Every rank of all these meshes must call it, with the same names in the same order; a rank
    outside of a mesh has the empty DTensors that torch gives it there. What goes from one rank to
    another is one message, of however many tensors. The rest is as in `redistribute`: gradients are
    moved back by one plan, too, and what only torch supports is redistributed by DTensor, tensor by
    tensor. Equal jobs are planned once.
    """
    _require_lane(lane)
    run = _uncompiled(_all_ours) if _in_torch_compile() else _all_ours
    return run(dtensors, placements, device_mesh, lane, options)


def _require_dtensor(name, value):
    if not isinstance(value, DTensor):
        raise InputError(f"{name}: expected a DTensor, found {type(value).__name__}")


def _require_mesh(name, value):
    if not isinstance(value, (DeviceMesh, type(None))):
        raise InputError(f"{name}: expected a DeviceMesh, found {type(value).__name__}")


def _require_lane(lane):
    if lane is not None and not isinstance(lane, str):
        raise InputError(f"lane: expected a string, equal on all ranks, found {lane!r}")


def _asked(lane, options):
    return Asked(lane or lane_of_thread(), tuple(sorted(options.items())) if options else ())


def _ours(dtensor, placements, device_mesh, lane, options):
    return routed(dtensor, device_mesh, placements, _asked(lane, options))


def _all_ours(dtensors, placements, device_mesh, lane, options):
    wanted = _wanted(dtensors, placements, device_mesh)
    return dict(zip(dtensors, all_routed(wanted, _asked(lane, options))))


def _wanted(dtensors, placements, device_mesh):
    if not isinstance(dtensors, Mapping) or not dtensors:
        raise InputError(f"dtensors: expected a dict of DTensors by name, found {shown(dtensors)}")
    placements = _by_name("placements", placements, dtensors)
    device_mesh = _by_name("device_mesh", device_mesh, dtensors)
    found = []
    for name, dtensor in dtensors.items():
        if not isinstance(name, str):
            raise InputError(f"dtensors: expected strings as names, found {shown(name)}")
        _require_dtensor(f"dtensors[{name!r}]", dtensor)
        _require_mesh(f"device_mesh[{name!r}]", device_mesh[name])
        found.append(wanted_of(name, dtensor, device_mesh[name], placements[name]))
    return found


def _by_name(what, given, dtensors):
    if not isinstance(given, Mapping):
        return dict.fromkeys(dtensors, given)
    for name in dtensors:
        if name not in given:
            raise InputError(f"{what}: expected one for each of dtensors, found none for {name!r}")
    for name in given:
        if name not in dtensors:
            raise InputError(f"{what}: expected names of dtensors, found {shown(name)}")
    return given


def redistributing(*, lane=None, **options):
    """Within this context DTensor.redistribute runs our plans, in this thread or task only. What
    they cannot do is left to DTensor; a warning says so once. Results are complete on return, also
    with async_op.

    >>> with reshard.torch.redistributing(planner="packed"):
    ...     y = x.redistribute(placements=[Replicate(), Shard(1)])
    """

    options = tuple(sorted(options.items()))

    def run(self, mesh, placements, async_op=False, forward_dtype=None, backward_dtype=None):
        asked = Asked(lane or lane_of_thread(), options, forward_dtype, backward_dtype, True)
        return routed(self, mesh, placements, asked)

    return patched(run)


def _in_torch_compile():
    """True if traced, or called from compiled code: then compilation would continue inside."""
    return torch.compiler.is_compiling() or (
        torch._C._dynamo.eval_frame.get_eval_frame_callback() is not None
    )


@functools.lru_cache(maxsize=None)
def _uncompiled(function):
    return torch.compiler.disable(function)
