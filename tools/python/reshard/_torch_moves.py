# SPDX-License-Identifier: BSD-3-Clause
"""Moves a rank's local tensors by a plan, over any transport."""

import functools
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
import torch.distributed as dist
from torch.distributed.tensor import Partial

from . import _execute, _plan
from ._library import InputError
from ._local import execute_all
from ._memory import Memory, ask_for_huge_pages
from ._requests import Asked, job_of, options_of, request_handle, request_of
from ._torch_channels import ranks_of, route_of
from ._torch_placements import unknown_kind
from ._torch_tensors import Stored, by_bits, misfit, settled, stored
from ._torch_transport import TorchTransport


class NotOurs(InputError):
    """Something that DTensor may do but this library does not."""


class MoveRequest(NamedTuple):
    """Of one tensor; placements are torch's."""

    shape: Tuple[int, ...]
    dtype: torch.dtype
    mesh: Any
    source: Tuple[Any, ...]
    to_mesh: Any
    target: Tuple[Any, ...]


class Planned(NamedTuple):
    """A request, and what is planned for its elements as they are stored."""

    request: MoveRequest
    stored: Stored
    fields: Dict[str, Any]  # of reshard.plan


def planned_as(request: MoveRequest) -> Planned:
    """Raises NotOurs if the library cannot move such a tensor."""
    dtype, source, target = request.dtype, request.source, request.target
    if kind := unknown_kind((*source, *target)):
        raise NotOurs(
            f"placements: expected Shard, Replicate, Partial or _StridedShard, found {kind}"
        )
    kept_as = stored(dtype, len(request.shape))
    if kept_as is None:
        raise NotOurs(f"dtype: expected one that the library can move, found {dtype}")
    if kept_as.pairs and any(_multiplies(each) for each in (*source, *target)):
        raise NotOurs(f"placements: expected sums of {dtype}, found {source} to {target}")
    planned = Planned(request, kept_as, _fields(request, kept_as))
    if not any(each.is_partial() for each in (*source, *target)):
        return planned
    try:
        request_handle(request_of(**planned.fields))
    except InputError as error:
        if "is not defined for" not in str(error):
            raise
        # Even addends that this library cannot add may stay where they are.
        if not _keeps_addends(source, target):
            raise NotOurs(str(error)) from None
        bits = by_bits(dtype)
        summed = request._replace(source=_summed(source), target=_summed(target))
        return Planned(request, bits, _fields(summed, bits))
    if kept_as.only_moves and _plan.plan(planner="p2p", **planned.fields).adds:
        raise NotOurs(f"dtype: expected one that the library can add, found {dtype}")
    return planned


def _fields(request, kept_as):
    fields = {
        "shape": kept_as.shape(request.shape),
        "dtype": kept_as.dtype,
        "mesh": request.mesh,
        "source": request.source,
        "target": request.target,
    }
    return fields if request.to_mesh == request.mesh else {**fields, "to_mesh": request.to_mesh}


def _keeps_addends(source, target):
    return len(source) == len(target) and all(
        before == after or not (before.is_partial() or after.is_partial())
        for before, after in zip(source, target)
    )


def _multiplies(placement):
    return placement.is_partial() and placement.reduce_op not in ("sum", "avg")


def _summed(placements):
    return tuple(Partial("sum") if each.is_partial() else each for each in placements)


class Move:
    """A plan, of one tensor or many, and what a rank's local tensors must be like."""

    def __init__(self, tensors: Sequence[Planned], options, names: Optional[Sequence[str]] = None):
        """names: of the tensors of a job; None for one tensor."""
        self.stored = [each.stored for each in tensors]
        self.dtypes = [each.request.dtype for each in tensors]
        self.what = [f"dtensors[{name!r}]" for name in names] if names else ["dtensor"]
        self._shapes: Dict[int, List[Any]] = {}
        fields = [each.fields for each in tensors]
        if not options and all(each.request.mesh.device_type == "cpu" for each in tensors):
            # The default topology is made of GPUs. Between processes of one host the bytes and the
            # wake-ups matter, and a single exchange has the fewest; but with sums it would exchange
            # whole addends.
            self.plan = _plan_of(fields, names, planner="p2p")
            if not self.plan.adds:
                return
        self.plan = _plan_of(fields, names, **options)

    def shapes(self, rank):
        """By tensor: the shapes of the local tensors before and after; None where the rank has
        none."""
        found = self._shapes.get(rank)
        if found is None:
            found = self._shapes[rank] = [
                tuple(each and each[:-1] for each in shapes) if stored.pairs else shapes
                for stored, shapes in zip(
                    self.stored,
                    (self.plan.shard_shapes(rank, i) for i in range(len(self.stored))),
                )
            ]
        return found


def _plan_of(fields, names, **given):
    options = options_of(**given)
    if options.free_source:
        raise InputError(
            "free_source: expected False, as DTensors keep their shards while they are moved, "
            "found True"
        )
    if names is None:
        return _plan.planned(Asked((request_of(**fields[0]),), options))
    return _plan.planned_job(job_of(dict(zip(names, fields)), options, "dtensors"))


def distinct(meshes):
    """Each mesh once, in the same order on all ranks whatever the order of the tensors."""
    found: List[Any] = []
    for mesh in {id(mesh): mesh for mesh in meshes}.values():
        if not any(mesh == other for other in found):
            found.append(mesh)
    return tuple(sorted(found, key=lambda mesh: (tuple(mesh.shape), ranks_of(mesh))))


@functools.lru_cache(maxsize=1024)
def move_of(request, options):
    return Move([planned_as(request)], dict(options))


def moved(move, locals_, meshes, lane):
    """The local tensors after the move; empty where the rank has none."""
    if torch._C._len_torch_dispatch_stack() and _all_ranks_are_here():
        return _moved_in_one_process(move, locals_)
    route = route_of(meshes)
    if not route.own:
        return locals_  # empty, as the rank has no part
    rank = dist.get_rank()
    shapes = move.shapes(rank)
    why = None
    for local, (source, _), dtype, what in zip(locals_, shapes, move.dtypes, move.what):
        why = why or (source is not None and misfit(local, source, dtype, what)) or None
    on_device = any(map(_execute.on_device, locals_))
    if route.channel is not None and not on_device:
        return route.channel.run(
            lane,
            move.plan.fingerprint,
            why,
            lambda carrier: _run(move, rank, locals_, shapes, carrier, False),
        )
    if why:
        raise InputError(why)
    return _run(move, rank, locals_, shapes, _transport(meshes, lane), on_device)


_threads: Dict[Any, str] = {}  # by process group, the lane that uses it


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


def _run(move, rank, locals_, shapes, transport, on_device):
    arrays = []
    for local, (source, destination), stored in zip(locals_, shapes, move.stored):
        given = None if source is None else stored.of(settled(local).contiguous())
        taken = None
        if destination is not None:
            taken = local.new_empty(stored.shape(destination), dtype=stored.dtype)
            if taken.nbytes >= _LARGE and not on_device:
                ask_for_huge_pages(taken.data_ptr(), taken.nbytes)
        arrays.append((given, taken))
    if on_device:
        transport.run_on_device(move.plan, rank, arrays)
    else:
        transport.run(move.plan, rank, [tuple(map(_memory, pair)) for pair in arrays])
    return [
        local.new_empty(0) if taken is None else stored.back(taken, dtype)
        for local, (_, taken), stored, dtype in zip(locals_, arrays, move.stored, move.dtypes)
    ]


def _all_ranks_are_here():
    """Whether torch's LocalTensorMode is on."""
    module = sys.modules.get("torch.distributed._local_tensor")
    return module is not None and module.enabled_local_tensor_mode() is not None


def _moved_in_one_process(move, locals_):
    """For torch's LocalTensor, which holds the local tensors of all ranks, or a single tensor that
    is the same on all of them."""
    from torch.distributed._local_tensor import LocalTensor, maybe_disable_local_tensor_mode

    ranks = move.plan.ranks
    by_rank = [getattr(each, "_local_tensors", None) or dict.fromkeys(ranks, each)
               for each in locals_]  # fmt: skip
    sources: List[List[Any]] = []
    destinations: List[List[Any]] = []
    with maybe_disable_local_tensor_mode():
        for rank in ranks:
            given, taken = [], []
            for tensors, (source, destination), stored, dtype, what in zip(
                by_rank, move.shapes(rank), move.stored, move.dtypes, move.what
            ):
                if source is not None and (why := misfit(tensors[rank], source, dtype, what)):
                    raise InputError(f"rank {rank}: {why}")
                like = next(iter(tensors.values()))
                given.append(
                    None if source is None else stored.of(settled(tensors[rank]).contiguous())
                )
                taken.append(
                    None
                    if destination is None
                    else like.new_empty(stored.shape(destination), dtype=stored.dtype)
                )
            sources.append(given)
            destinations.append(taken)
        execute_all(move.plan, sources, destinations)
        after = [
            {
                rank: stored.back(taken[i], dtype)
                for rank, taken in zip(ranks, destinations)
                if taken[i] is not None
            }
            for i, (stored, dtype) in enumerate(zip(move.stored, move.dtypes))
        ]
    return [LocalTensor(each) for each in after]


def _memory(tensor):
    if tensor is None:
        return Memory(0, 0)
    return Memory(tensor.data_ptr(), tensor.numel() * tensor.element_size(), tensor)
