# SPDX-License-Identifier: BSD-3-Clause
"""Redistributes many DTensors by one plan, forward and backward."""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch
from torch.distributed.tensor import DTensor

from ._library import InputError
from ._requests import placed
from ._torch_autograd import is_traced, routed
from ._torch_lanes import backward_lane
from ._torch_moves import Move, NotOurs, distinct, moved, planned_as
from ._torch_placements import backward_placements, placements_of
from ._torch_requests import move_request, moved_spec, on_mesh, stays


class Wanted(NamedTuple):
    """Where one of the DTensors is to go."""

    name: str
    dtensor: Any
    mesh: Any
    placements: Tuple[Any, ...]


class _Job(NamedTuple):
    move: Optional[Move]  # of the tensors that move by our plan; None if there are none
    together: List[int]  # those tensors
    specs: List[Any]  # of their results, except for their meshes


_jobs: Dict[Any, _Job] = {}
_MOST_JOBS = 16


def wanted_of(name, dtensor, device_mesh, placements) -> Wanted:
    mesh = device_mesh or dtensor.device_mesh
    try:
        target = placements_of(placements, dtensor.ndim, mesh.ndim)
    except InputError as error:
        raise placed(error, f"dtensors[{name!r}]") from None
    return Wanted(name, dtensor, mesh, target)


def job_of(wanted: List[Wanted], options) -> _Job:
    """Cached by the DTensors' specs."""
    key = (tuple((w.name, w.dtensor._spec, w.mesh, w.placements) for w in wanted), options)
    try:
        found = _jobs.get(key)
    except TypeError:
        raise InputError("options: expected hashable values, such as strings") from None
    if found is None:
        found = _new_job(wanted, options)
        if len(_jobs) >= _MOST_JOBS:
            _jobs.clear()
        _jobs[key] = found
    return found


def _new_job(wanted, options):
    together, planned, specs = [], [], []
    for index, (name, dtensor, mesh, target) in enumerate(wanted):
        if stays(dtensor, mesh, target):
            continue
        try:
            request = move_request(dtensor, mesh, target, dtensor.dtype)
            planned.append(planned_as(request))
        except NotOurs as error:
            if mesh != dtensor.device_mesh:
                raise placed(error, f"dtensors[{name!r}]") from None
            continue  # DTensor may be able to
        except InputError as error:
            raise placed(error, f"dtensors[{name!r}]") from None
        together.append(index)
        specs.append(moved_spec(dtensor, mesh, target, dtensor.dtype))
    names = [wanted[index].name for index in together]
    move = Move(planned, dict(options), names) if together else None
    return _Job(move, together, specs)


def all_routed(wanted: List[Wanted], asked):
    """By tensor: those that our plan moves by one, the others one by one."""
    traced = any(is_traced(each.dtensor._local_tensor) for each in wanted)
    job = _Job(None, [], []) if traced else job_of(wanted, asked.options)
    found: List[Any] = [None] * len(wanted)
    if job.move is not None:
        movers = [wanted[index] for index in job.together]
        dtensors = [each.dtensor for each in movers]
        if torch.is_grad_enabled() and any(each.requires_grad for each in dtensors):
            results = _RedistributeAll.apply(job, movers, asked, *dtensors)
        else:
            results = _moved(job, movers, asked)
        for index, result in zip(job.together, results):
            found[index] = result
    for index, each in enumerate(wanted):
        if found[index] is None:
            found[index] = routed(each.dtensor, each.mesh, each.placements, asked)
    return found


def _moved(job, movers, asked):
    meshes = distinct(mesh for each in movers for mesh in (each.dtensor._spec.mesh, each.mesh))
    locals_ = [each.dtensor._local_tensor for each in movers]
    return [
        DTensor(local, on_mesh(spec, each.mesh), requires_grad=False)
        for local, spec, each in zip(
            moved(job.move, locals_, meshes, asked.lane), job.specs, movers
        )
    ]


class _RedistributeAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, job, movers, asked, *dtensors):
        ctx.set_materialize_grads(False)
        ctx.asked = asked
        ctx.before = [
            (each.name, each.dtensor.device_mesh, each.dtensor.placements, each.dtensor.dtype)
            for each in movers
        ]
        results = _moved(job, movers, asked)
        ctx.mark_non_differentiable(
            *(after for after, before in zip(results, dtensors) if not before.requires_grad)
        )
        return tuple(results)

    @staticmethod
    def backward(ctx, *gradients):
        asked = ctx.asked._replace(lane=backward_lane(ctx.asked.lane))
        back = {}  # by tensor; every rank has gradients of the same
        for index, ((name, mesh, placements, dtype), gradient) in enumerate(
            zip(ctx.before, gradients)
        ):
            if gradient is None:
                continue
            gradient = gradient if gradient.dtype == dtype else gradient.to(dtype)
            same_mesh = mesh == gradient.device_mesh
            kept = backward_placements(placements, gradient.placements, same_mesh)
            back[index] = Wanted(name, gradient, mesh, kept)
        found = dict(zip(back, all_routed(list(back.values()), asked)))
        return (None, None, None, *(found.get(index) for index in range(len(gradients))))
