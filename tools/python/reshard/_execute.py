# SPDX-License-Identifier: BSD-3-Clause
"""Runs plans on a caller's arrays: one rank's part over the caller's transport, or all ranks' parts
in this process."""

import ctypes as c
from collections.abc import Mapping
from typing import NamedTuple

from . import _library as library
from ._buffers import RankBuffers, takes_buffers
from ._layouts import rank_number
from ._memory import HOST_DEVICES, bytes_at
from ._plan import require_plan
from ._shards import arrays_of, lent, shards_of

_EMPTY_RUN = library.Run()


class Transfer(NamedTuple):
    """Bytes to or from another rank."""

    peer: int
    tag: int  # the same at both ends
    memory: memoryview


class _Run:
    """The function that the library calls while it runs: an exception in `exchange` ends the run
    and is raised again after it."""

    def __init__(self, exchange):
        self.error = None
        self._exchange = exchange
        self.function = library.Exchange(self._called)

    def _called(self, _, sends, send_count, receives, receive_count):
        try:
            self._exchange(_transfers(sends, send_count), _transfers(receives, receive_count))
            return 0
        except BaseException as error:  # noqa: BLE001  (a C function cannot pass it on)
            self.error = error
            return 1


def _transfers(array, count):
    return [
        Transfer(each.peer, each.tag, bytes_at(each.data, each.bytes)) for each in array[:count]
    ]


def _transport_of(transport):
    """An object with `exchange(sends, receives)`: a transport itself, or one made from
    torch.distributed, one of its process groups, or a communicator of mpi4py."""
    if transport is None or hasattr(transport, "exchange"):
        return transport
    if hasattr(transport, "Isend") and hasattr(transport, "Irecv"):
        from ._mpi import MpiTransport

        return MpiTransport(transport)
    if type(transport).__module__.split(".")[0] == "torch" or hasattr(transport, "ProcessGroup"):
        from ._torch_transport import TorchTransport

        return TorchTransport(None if hasattr(transport, "ProcessGroup") else transport)
    raise library.InputError(
        "transport: expected torch.distributed, a process group, an mpi4py communicator or an "
        f"object with exchange(sends, receives), found {type(transport).__name__}"
    )


def on_device(array):
    """Whether the host cannot read the array's memory, as reported by DLPack."""
    return hasattr(array, "__dlpack_device__") and array.__dlpack_device__()[0] not in HOST_DEVICES


def _require_device_transport(carrier, transport):
    if not hasattr(carrier, "run_on_device"):
        raise library.InputError(
            "transport: expected torch.distributed, as the arrays are on a device, found "
            f"{type(transport).__name__}"
        )


def execute(plan, rank, source, destination, transport=None):
    """Runs `rank`'s part of the plan; every rank of the plan must call it.

    source, destination: the rank's shards, contiguous arrays with the buffer protocol or DLPack, of
    exactly the shards' bytes; None if the rank has none. Of a plan of many tensors, lists of these,
    one per tensor, or dicts by name, without those that the rank does not have. Of a plan of
    layouts, dicts of whole buffers by their names, all that the rank has (`Plan.buffers`); padding
    in them stays as it is. Those on a GPU are copied to host memory and back.

    transport: torch.distributed or one of its process groups (of all ranks of the plan; peers are
    global ranks), a communicator of mpi4py, or an object with `exchange(sends, receives)`, which
    gets lists of Transfer and returns when all are done; None if nothing is sent.

    Arrays in host memory get the bits of `reshard simulate`, whatever carries the messages. Arrays
    on a GPU need torch.distributed; collectives are then the library's own and fold in its order.
    Raises InputError if an array does not fit, and whatever the transport raises.
    """
    require_plan(plan)
    rank = rank_number(rank)
    carrier = _transport_of(transport)
    exchange = carrier.exchange if carrier is not None else None
    if takes_buffers(plan, source, destination):
        held = [each for given in (source, destination) if isinstance(given, Mapping)
                for each in given.values()]  # fmt: skip
        if any(map(on_device, held)):
            _require_device_transport(carrier, transport)
            from ._torch_buffers import run_on_device

            run_on_device(plan, rank, source, destination, carrier)
            return
        buffers = RankBuffers(plan, rank, source, destination)
        buffers.gather()
        run_on_host(plan, rank, buffers.shards, exchange)
        buffers.scatter()
        return
    arrays = [
        (before, after)
        for (_, before), (_, after) in zip(
            arrays_of(plan, source, "source"), arrays_of(plan, destination, "destination")
        )
    ]
    if any(on_device(array) for pair in arrays for array in pair):
        _require_device_transport(carrier, transport)
        carrier.run_on_device(plan, rank, arrays)
        return
    shards = shards_of(plan, source, destination)
    run_on_host(plan, rank, shards, exchange)


def run_on_host(plan, rank, shards, exchange):
    """The same on memory that has been checked, source and destination by tensor."""
    run = _Run(exchange) if exchange is not None else None
    arguments = _arguments(shards)
    if run is not None:
        arguments.exchange = run.function
    try:
        library.call("execute", plan.program(rank).pointer, c.byref(arguments))
    except library.BackendError:
        if run is not None and run.error is not None:
            raise run.error from None
        raise


def run_on_rings(plan, rank, shards, rings, number):
    """The same over memory shared by the ranks. number: identifies the run, equal on all ranks."""
    arguments = _arguments(shards)
    try:
        program = plan.program(rank).pointer
        library.call(
            "execute_on_rings", program, c.byref(arguments), rings.pointer, c.c_int64(number)
        )
    except library.BackendError:
        error, rings.error = rings.error, None
        if error is not None:
            raise error from None
        raise


def _arguments(shards):
    arguments = library.Run.from_buffer_copy(_EMPTY_RUN)
    if len(shards) > 1:
        arguments.tensors = lent(shards)
        return arguments
    ((given, taken),) = shards
    arguments.source, arguments.source_bytes = given.address or None, given.size
    arguments.destination, arguments.destination_bytes = taken.address or None, taken.size
    return arguments
