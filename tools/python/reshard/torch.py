# SPDX-License-Identifier: BSD-3-Clause
"""DTensor.redistribute by our plans, over the process group that is there.

>>> from reshard.torch import redistribute
>>> redistribute(dtensor, [Replicate(), Shard(1)])

Forward and backward, on one mesh or across two; requests are planned once.
"""

import contextlib
import functools

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Replicate

from . import _plan
from ._execute import execute
from ._library import InputError
from ._torch_transport import TorchTransport

__all__ = ["plan_of", "redistribute", "redistributing"]


def plan_of(dtensor, placements, device_mesh=None, **options):
    """The plan that `redistribute` runs, of reshard.plan's options."""
    return _planned(
        tuple(dtensor.shape),
        dtensor.dtype,
        dtensor.device_mesh,
        tuple(dtensor.placements),
        device_mesh or dtensor.device_mesh,
        tuple(placements),
        tuple(sorted(options.items())),
    )


@functools.lru_cache(maxsize=1024)
def _planned(shape, dtype, mesh, source, to_mesh, target, options):
    other = {} if to_mesh == mesh else {"to_mesh": to_mesh}
    return _plan.plan(shape, dtype, mesh, source, target, **other, **dict(options))


def redistribute(dtensor, placements, device_mesh=None, **options):
    """`dtensor` as `placements` say, on `device_mesh` or its own mesh; differentiable twice.

    Every rank of both meshes calls it, with a DTensor of the same global shape. What travels goes
    over the mesh's process group, or the default one where several axes or meshes have none
    together: on processors as messages of gloo or MPI, with the bits of
    `reshard simulate`; on GPUs as batches of messages and collectives of NCCL. Options are
    reshard.plan's: planner, topology, memory_limit.

    Raises reshard.InputError where the request is wrong or cannot be met.
    """
    if not isinstance(dtensor, DTensor):
        raise InputError(f"dtensor: expected a DTensor, found {type(dtensor).__name__}")
    mesh = device_mesh or dtensor.device_mesh
    return _Redistribute.apply(dtensor, mesh, _positive(placements, dtensor.ndim), options)


def _positive(placements, dims):
    """Dims counted from the first, as DTensor keeps them."""
    out = []
    for placement in placements:
        if getattr(placement, "dim", 0) < 0:
            more = (
                {"split_factor": placement.split_factor}
                if hasattr(placement, "split_factor")
                else {}
            )
            placement = type(placement)(placement.dim + dims, **more)
        out.append(placement)
    return tuple(out)


class _Redistribute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, dtensor, mesh, placements, options):
        ctx.mesh, ctx.placements, ctx.options = dtensor.device_mesh, dtensor.placements, options
        if mesh == dtensor.device_mesh and placements == tuple(dtensor.placements):
            local = dtensor.to_local()
        else:
            local = _moved(dtensor, mesh, placements, options)
        return DTensor.from_local(
            local,
            mesh,
            placements,
            run_check=False,
            shape=dtensor.shape,
            stride=_dense_strides(dtensor.shape),
        )

    @staticmethod
    def backward(ctx, gradient):
        # A gradient of addends is the same on all of them: it stays whole, as DTensor keeps it.
        kept = tuple(
            Replicate() if before.is_partial() and not now.is_partial() else before
            for before, now in zip(ctx.placements, gradient.placements)
        )
        return _Redistribute.apply(gradient, ctx.mesh, kept, ctx.options), None, None, None


def _dense_strides(shape):
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def _moved(dtensor, mesh, placements, options):
    local = dtensor.to_local().detach()
    own = [each for each in (mesh, dtensor.device_mesh) if each.get_coordinate() is not None]
    if not own:
        return local  # empty, as the rank has no part
    plan = plan_of(dtensor, placements, mesh, **options)
    rank = dist.get_rank()
    source, destination = plan.shard_shapes(rank)
    given = None if source is None else local.contiguous()
    taken = None if destination is None else local.new_empty(destination)
    groups = [group for each in own for group in each.get_all_groups()]
    # A mesh of one axis has a group of all its ranks; of several there is only the default one.
    alone = mesh == dtensor.device_mesh and mesh.ndim == 1
    execute(plan, rank, given, taken, TorchTransport(groups[0] if alone else None, groups))
    return local.new_empty(0) if taken is None else taken


@contextlib.contextmanager
def redistributing(**options):
    """Within it DTensor.redistribute runs our plans; calls that ask for what is DTensor's alone
    (async_op, forward_dtype, backward_dtype) stay DTensor's.

    >>> with reshard.torch.redistributing(planner="packed"):
    ...     y = x.redistribute(placements=[Replicate(), Shard(1)])
    """
    theirs = DTensor.redistribute

    @functools.wraps(theirs)
    def ours(self, device_mesh=None, placements=None, **more):
        if placements is None or any(more.values()):
            return theirs(self, device_mesh, placements, **more)
        return redistribute(self, placements, device_mesh, **options)

    DTensor.redistribute = ours
    try:
        yield
    finally:
        DTensor.redistribute = theirs
