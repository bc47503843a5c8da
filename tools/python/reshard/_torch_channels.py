# SPDX-License-Identifier: BSD-3-Clause
"""Keeps messages of different calls apart when several threads of a process redistribute at once.

Messages that are distinguished only by their order reach the wrong call as soon as threads take
turns in a different order on another rank. So each mesh has a separate process group here, which
carries none of the user's messages; within it each thread has a lane, with a number that is part of
every tag, and counts its calls. If all ranks share a host, a lane also has shared memory, and the
group only carries what is sent once per plan. Ranks agree on the name of a mesh through the names
of its axes' groups, which distinguish two meshes of the same ranks, and on a lane through the name
of the thread.
"""

import itertools
import os
import threading
import time
import weakref
import zlib
from typing import Any, Dict, NamedTuple, Optional, Tuple

import torch
import torch.distributed as dist

from ._execute import run_on_host, run_on_rings
from ._library import InputError
from ._torch_lanes import Lane, lock
from ._torch_rings import Rings, SharedMemory, bytes_for

_LANES, _CALLS, _STEPS = 1 << 12, 1 << 11, 1 << 8  # a tag has 31 bits


def _awaited(store, key, timeout, what):
    """Waits for a key and returns its value. It polls, because a client of a store serves one
    thread at a time: a thread that waits in it would block the threads that it waits for."""
    end, pause = time.monotonic() + timeout.total_seconds(), 0.0002
    while not store.check([key]):
        if time.monotonic() > end:
            raise InputError(f"{what} within {timeout.total_seconds():.0f} s")
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
    return store.get(key).decode()


# ---- meshes


def ranks_of(mesh):
    return tuple(mesh.mesh.flatten().tolist())


def _backend_of(mesh):
    """The backend of the mesh's own groups, which are all of one kind."""
    return mesh.get_group(0)._get_backend(torch.device(mesh.device_type))


def _agreed_name(mesh, store, timeout):
    """The names of the groups of the mesh's first rank. That rank sends them to the ranks that
    share a group with it, and those pass them on."""
    names = [group.group_name for group in mesh.get_all_groups()]
    place = mesh.get_coordinate()
    prefix = f"reshard/{zlib.crc32(repr((ranks_of(mesh), tuple(mesh.shape))).encode())}/"
    keys = [f"{prefix}{axis}/{name}" for axis, name in enumerate(names)]
    cut = [axis for axis, at in enumerate(place) if at != 0]
    if cut:
        name = _awaited(store, keys[cut[-1]], timeout, "mesh: other ranks did not use it")
    else:
        name = ",".join(names)
    for axis, at in enumerate(place):
        if at == 0:
            store.set(keys[axis], name)
    return prefix + name


class _Channel:
    """A gloo process group for the messages of one mesh, or of all that tensors move between, and
    its lanes."""

    def __init__(self, name, ranks, store, timeout):
        own = store.clone() if hasattr(store, "clone") else store
        self.places = {rank: place for place, rank in enumerate(ranks)}
        self._rank = dist.get_rank()
        self._store = dist.PrefixStore(name, store)
        self._timeout = timeout
        self._lanes = {}
        self._numbers = itertools.count()
        self.group = dist.ProcessGroupGloo(
            dist.PrefixStore(name + "/gloo", own), self.places[self._rank], len(ranks), timeout
        )

    def lane(self, name):
        with lock:
            lane = self._lanes.setdefault(name, Lane(name))
        with lane.meeting:
            if lane.number is None:
                place = self.places[self._rank]
                lane.rings, lane.number = self._offer(lane) if place == 0 else self._join(lane)
        return lane

    def _offer(self, lane):
        """Run on the mesh's first rank, which numbers the lanes and makes the memory that all
        share."""
        store, places = self._store, len(self.places)
        memory = SharedMemory.offer(bytes_for(places)) if places > 1 else None
        number = next(self._numbers)
        key = "lane/" + lane.name
        store.set(key, f"{number} {memory.words if memory else '-'}")
        processes = [str(os.getpid())]
        for rank, place in self.places.items() if memory else ():
            if place > 0:
                why = self._absent(rank, lane)
                processes.append(_awaited(store, f"{key}/{place}", self._timeout, why))
        met = memory is not None and "-" not in processes
        if memory:
            store.set(key + "/all", " ".join(processes) if met else "-")
            memory.end_offer()
        return self._rings(memory, processes) if met else None, number

    def _join(self, lane):
        store, key = self._store, "lane/" + lane.name
        why = self._absent(next(iter(self.places)), lane)
        number, words = _awaited(store, key, self._timeout, why).split(" ", 1)
        if words == "-":
            return None, int(number)
        memory = SharedMemory.taken(words, bytes_for(len(self.places)))
        place = self.places[self._rank]
        store.set(f"{key}/{place}", str(os.getpid()) if memory else "-")
        processes = _awaited(store, key + "/all", self._timeout, why)
        met = processes != "-"
        return self._rings(memory, processes.split()) if met else None, int(number)

    @staticmethod
    def _absent(rank, lane):
        return f"lane: rank {rank} did not redistribute on this mesh in {lane.name}"

    def _rings(self, memory, processes):
        place = self.places[self._rank]
        return Rings(memory, place, list(self.places), list(map(int, processes)), self._timeout)

    def run(self, lane_name, fingerprint, refusal, body):
        """Runs body(carrier) as one call of a plan. `refusal`: why this rank cannot run it; it is
        sent to all ranks if the plan is new to the lane."""
        lane = self._lanes.get(lane_name)
        if lane is None or lane.number is None:
            lane = self.lane(lane_name)
        count = lane.enter()
        try:
            if fingerprint not in lane.known:
                lane.known.add(fingerprint)
                self._compare(lane, -1 if refusal else fingerprint, refusal)
            if refusal:
                raise InputError(refusal)
            if lane.rings is not None:
                result = body(_Shared(lane.rings, count << 32 | fingerprint))
            else:
                result = body(self._carrier(lane, count + fingerprint))
        finally:
            lane.leave()
        lane.require_alone()
        return result

    def _carrier(self, lane, number):
        tag = (lane.number % _LANES * _CALLS + number % _CALLS) * _STEPS
        return _Carrier(self.group, self.places, tag)

    def _compare(self, lane, said, refusal):
        """Compares plans when one runs for the first time: ranks with different plans would wait
        for each other, or take half a message for a whole one. In round k every rank sends the one
        2^k places on the least and the greatest that it knows, and the places they come from."""
        size, place = len(self.places), self.places[self._rank]
        tag = (lane.number % _LANES * _CALLS) * _STEPS + _STEPS - 1
        least = greatest = (said, place)
        step = 1
        while step < size:
            mine, theirs = torch.tensor([least, greatest]), torch.empty(2, 2, dtype=torch.int64)
            works = [
                self.group.recv([theirs], (place - step) % size, tag),
                self.group.send([mine], (place + step) % size, tag),
            ]
            for work in works:
                work.wait()
            least = min(least, tuple(theirs[0].tolist()))
            greatest = max(greatest, tuple(theirs[1].tolist()))
            step *= 2
        if refusal or least[0] == greatest[0]:
            return
        peer = list(self.places)[(least if said != least[0] else greatest)[1]]
        if least[0] == -1:
            raise InputError(f"dtensor: rank {peer} refused to redistribute its local tensor")
        raise InputError(
            f"placements: rank {peer} uses a different plan from rank {self._rank}; "
            "shape, dtype, meshes, placements and options must be equal on all ranks"
        )


class _Carrier:
    """One call, as messages over the group."""

    def __init__(self, group, places, tag):
        self._group, self._places, self._tag = group, places, tag

    def run(self, plan, rank, shards):
        run_on_host(plan, rank, shards, self.exchange)

    def exchange(self, sends, receives):
        # Sends first: a receive that finds its message announced needs no second round.
        group, works = self._group, []
        for each in sends:
            works.append(group.send([as_bytes(each.memory)], *self._at(each)))
        for each in receives:
            works.append(group.recv([as_bytes(each.memory)], *self._at(each)))
        try:
            while works:
                works.pop().wait()
        except BaseException:
            works.clear()  # late messages must not be written to freed memory
            raise

    def _at(self, transfer):
        return self._places[transfer.peer], self._tag + transfer.tag % (_STEPS - 1)


class _Shared:
    """One call, through memory shared by the ranks."""

    def __init__(self, rings, number):
        self._rings, self._number = rings, number

    def run(self, plan, rank, shards):
        run_on_rings(plan, rank, shards, self._rings, self._number)


def as_bytes(memory):
    return torch.frombuffer(memory, dtype=torch.uint8)


# ---- all of them


class Route(NamedTuple):
    """The connection between the ranks of one mesh, or of all that tensors move between."""

    world: Any  # the default process group for which it was made
    meshes: Tuple[Any, ...]  # weak references
    own: bool  # whether this rank is in any of them
    channel: Optional[_Channel]  # None if the process groups are not gloo's


_routes: Dict[Tuple[int, ...], Route] = {}
_making: Dict[Any, Any] = {}  # identity of meshes: a lock, then the channel


def route_of(meshes) -> Route:
    # Meshes are compared as objects: equal ones may have different groups.
    key = tuple(map(id, meshes))
    found = _routes.get(key)
    if (
        found is not None
        and found.world is dist.group.WORLD
        and all(ref() is mesh for ref, mesh in zip(found.meshes, meshes))
    ):
        return found
    own = tuple(mesh for mesh in meshes if mesh.get_coordinate() is not None)
    route = Route(
        dist.group.WORLD,
        tuple(map(weakref.ref, meshes)),
        bool(own),
        _channel_of(meshes, own) if own else None,
    )
    _routes[key] = route
    return route


def _channel_of(meshes, own):
    """Meshes with the same groups share a channel."""
    if any(_backend_of(mesh).name() != "gloo" for mesh in own):
        return None
    # Between meshes the name of the channel says nothing of their groups.
    identity = (id(dist.group.WORLD), *(_identity(mesh, len(meshes) == 1) for mesh in meshes))
    with lock:
        for old in [each for each in _making if each[0] != identity[0]]:
            del _making[old]
        making = _making.setdefault(identity, [threading.Lock(), dist.group.WORLD, None])
    with making[0]:
        if making[2] is None:
            making[2] = _made(meshes, own)
    return making[2]


def _made(meshes, own):
    store = dist.distributed_c10d._get_default_store()
    timeout = _backend_of(own[0]).options._timeout
    if len(meshes) == 1:
        name = _agreed_name(meshes[0], store, timeout)
    else:  # a rank of one mesh does not know the groups of the other
        name = "reshard/" + repr([(ranks_of(mesh), tuple(mesh.shape)) for mesh in meshes])
    ranks = sorted({rank for mesh in meshes for rank in ranks_of(mesh)})
    return _Channel(name, ranks, store, timeout)


def _identity(mesh, with_groups):
    names = None
    if with_groups and mesh.get_coordinate() is not None:
        names = tuple(group.group_name for group in mesh.get_all_groups())
    return (ranks_of(mesh), tuple(mesh.shape), names)
