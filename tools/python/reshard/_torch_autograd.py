# SPDX-License-Identifier: BSD-3-Clause
"""Redistributes one DTensor, forward and backward."""

import warnings

import torch
from torch.distributed._functional_collectives import _are_we_tracing
from torch.distributed.tensor import DTensor

from ._torch_lanes import backward_lane
from ._torch_moves import moved
from ._torch_patch import theirs
from ._torch_placements import backward_placements, placements_of
from ._torch_requests import on_mesh, prepare

_said = set()


def _say_once(why):
    if why not in _said:
        _said.add(why)
        warnings.warn(f"reshard: DTensor's own redistribute runs instead: {why}", stacklevel=4)


def is_traced(local):
    plain = type(local) is torch.Tensor and not torch._C._len_torch_dispatch_stack()
    return not plain and _are_we_tracing()


def routed(dtensor, device_mesh, placements, asked):
    if is_traced(dtensor._local_tensor):
        target = placements_of(
            placements, dtensor.ndim, (device_mesh or dtensor.device_mesh).ndim
        )
        return _by_dtensor(dtensor, device_mesh, target, asked, "it is traced")
    prepared = prepare(dtensor, device_mesh, placements, asked)
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
        meshes = (mesh,) if to_mesh is mesh or to_mesh == mesh else (mesh, to_mesh)
        (local,) = moved(prepared.move, (local,), meshes, asked.lane)
    elif local is dtensor._local_tensor:
        local = local.view_as(local)
    return DTensor(local, on_mesh(prepared.spec, to_mesh), requires_grad=False)


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
        found = routed(gradient, ctx.mesh, kept, asked)
        return found if found.dtype == ctx.dtype else found.to(ctx.dtype), None, None, None


def _unless(dtype, same):
    return None if dtype == same else dtype
