# SPDX-License-Identifier: BSD-3-Clause
"""Moves a rank's local tensor by a plan, over any transport."""

import functools
import sys

import torch
import torch.distributed as dist
from torch.distributed.tensor import Partial

from . import _execute, _plan
from ._library import InputError
from ._local import execute_all
from ._memory import Memory, ask_for_huge_pages
from ._torch_channels import route_of
from ._torch_placements import unknown_kind
from ._torch_tensors import by_bits, misfit, settled, stored
from ._torch_transport import TorchTransport

class NotOurs(InputError):
    """Something that DTensor may do but this library does not."""


class Move:
    """A plan, and what a rank's local tensors must be like."""

    def __init__(self, shape, dtype, mesh, source, to_mesh, target, options):
        if kind := unknown_kind((*source, *target)):
            raise NotOurs(
                f"placements: expected Shard, Replicate, Partial or _StridedShard, found {kind}"
            )
        self.stored = stored(dtype, len(shape))
        if self.stored is None:
            raise NotOurs(f"dtype: expected one that the library can move, found {dtype}")
        if self.stored.pairs and any(_multiplies(each) for each in (*source, *target)):
            raise NotOurs(f"placements: expected sums of {dtype}, found {source} to {target}")
        self.dtype = dtype
        options = dict(options) if to_mesh == mesh else {**options, "to_mesh": to_mesh}
        try:
            self._plan(shape, mesh, source, target, options)
        except InputError as error:
            if "is not defined for" not in str(error):
                raise
            # Even addends that this library cannot add may stay where they are.
            if not _keeps_addends(source, target):
                raise NotOurs(str(error)) from None
            self.stored = by_bits(dtype)
            self._plan(shape, mesh, *map(_summed, (source, target)), options)

    def _plan(self, shape, mesh, source, target, options):
        stored = self.stored
        request = (stored.shape(shape), stored.dtype, mesh, source, target)
        if not options.keys() - {"to_mesh"} and mesh.device_type == "cpu":
            # The default topology is made of GPUs. Between processes of one host the bytes and the
            # wake-ups matter, and a single exchange has the fewest; but with sums it would exchange
            # whole addends.
            self.plan = _plan.plan(*request, planner="p2p", **options)
            if not self.plan.adds:
                return
        self.plan = _plan.plan(*request, **options)
        if stored.only_moves and self.plan.adds:
            raise NotOurs(f"dtype: expected one that the library can add, found {self.dtype}")

    def shards(self, rank):
        """Shapes of the local tensors before and after; None where the rank has none."""
        shapes = self.plan.shard_shapes(rank)
        if not self.stored.pairs:
            return shapes
        return tuple(each and each[:-1] for each in shapes)


def _keeps_addends(source, target):
    return len(source) == len(target) and all(
        before == after or not (before.is_partial() or after.is_partial())
        for before, after in zip(source, target)
    )


def _multiplies(placement):
    return placement.is_partial() and placement.reduce_op not in ("sum", "avg")


def _summed(placements):
    return tuple(Partial("sum") if each.is_partial() else each for each in placements)


@functools.lru_cache(maxsize=1024)
def move_of(shape, dtype, mesh, source, to_mesh, target, options):
    return Move(shape, dtype, mesh, source, to_mesh, target, dict(options))


def moved(move, local, mesh, to_mesh, lane):
    """The local tensor after the move; empty if the rank has none."""
    if torch._C._len_torch_dispatch_stack() and _all_ranks_are_here():
        return _moved_in_one_process(move, local)
    meshes = (mesh,) if to_mesh is mesh or to_mesh == mesh else (mesh, to_mesh)
    route = route_of(meshes)
    if not route.own:
        return local  # empty, as the rank has no part
    rank = dist.get_rank()
    source, destination = move.shards(rank)
    why = None if source is None else misfit(local, source, move.dtype)
    channel = None if _execute.on_device(local) else route.channel
    if channel is not None:
        return channel.run(
            lane,
            move.plan.fingerprint,
            why,
            lambda carrier: _run(move, rank, local, destination, carrier),
        )
    if why:
        raise InputError(why)
    return _run(move, rank, local, destination, _transport(meshes, lane))


_threads = {}  # by process group, the lane that uses it


def _transport(meshes, lane):
    own = [mesh for mesh in meshes if mesh.get_coordinate() is not None]
    groups = [group for each in own for group in each.get_all_groups()]
    # A mesh of one axis has a group of all its ranks; otherwise only the default group has all of
    # them.
    alone = len(meshes) == 1 and meshes[0].ndim == 1
    group = groups[0] if alone else dist.group.WORLD
    thread = lane.partition(", backward")[0]
    if dist.get_backend(group) != "fake" and _threads.setdefault(group, thread) != thread:
        raise InputError(
            f"lane: {_threads[group]} redistributes over this process group, which cannot "
            f"separate the messages of {thread}; call from one thread, or on meshes of one axis, "
            "one per thread"
        )
    return TorchTransport(group if alone else None, groups)


_LARGE = 4 << 20  # bytes


def _run(move, rank, local, destination, transport):
    given = None
    if move.shards(rank)[0] is not None:
        given = move.stored.of(settled(local).contiguous())
    taken = None
    if destination is not None:
        taken = local.new_empty(move.stored.shape(destination), dtype=move.stored.dtype)
        if taken.nbytes >= _LARGE and not _execute.on_device(taken):
            ask_for_huge_pages(taken.data_ptr(), taken.nbytes)
    if not _execute.on_device(local):
        transport.run(move.plan, rank, _memory(given), _memory(taken))
    else:
        transport.run_on_device(move.plan, rank, given, taken)
    if taken is None:
        return local.new_empty(0)
    return move.stored.back(taken, move.dtype)


def _all_ranks_are_here():
    """Whether torch's LocalTensorMode is on."""
    module = sys.modules.get("torch.distributed._local_tensor")
    return module is not None and module.enabled_local_tensor_mode() is not None


def _moved_in_one_process(move, local):
    """For torch's LocalTensor, which holds the local tensors of all ranks, or a single tensor that
    is the same on all of them."""
    from torch.distributed._local_tensor import LocalTensor, maybe_disable_local_tensor_mode

    by_rank = getattr(local, "_local_tensors", None) or dict.fromkeys(move.plan.ranks, local)
    sources, destinations = {}, {}
    with maybe_disable_local_tensor_mode():
        for rank in move.plan.ranks:
            source, destination = move.shards(rank)
            if source is not None:
                given = by_rank[rank]
                if why := misfit(given, source, move.dtype):
                    raise InputError(f"rank {rank}: {why}")
                sources[rank] = move.stored.of(settled(given).contiguous())
            if destination is not None:
                like = next(iter(by_rank.values()))
                destinations[rank] = like.new_empty(
                    move.stored.shape(destination), dtype=move.stored.dtype
                )
        execute_all(
            move.plan,
            [sources.get(rank) for rank in move.plan.ranks],
            [destinations.get(rank) for rank in move.plan.ranks],
        )
        after = {r: move.stored.back(each, move.dtype) for r, each in destinations.items()}
    return LocalTensor(after)


def _memory(tensor):
    if tensor is None:
        return Memory(0, 0)
    return Memory(tensor.data_ptr(), tensor.numel() * tensor.element_size(), tensor)
