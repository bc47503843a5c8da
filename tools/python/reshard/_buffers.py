# SPDX-License-Identifier: BSD-3-Clause
"""A rank's buffers of a plan of layouts, and the shards in them that plans are run on."""

import ctypes as c
import sys
from collections.abc import Mapping
from typing import List, NamedTuple, Tuple

from . import _library as library
from ._layouts import shown, text_option
from ._memory import Memory, memory_of

SIDES = ("from", "to")


class StoredBuffer(NamedTuple):
    """A buffer of a rank, as a file of layouts has it."""

    rank: int
    name: str
    shape: Tuple[int, ...]
    dtype: str  # "bf16"
    bytes: int  # all of it, padding included


def stored_buffers(plan, side) -> List[StoredBuffer]:
    """Those of all ranks; none of a plan that is not of layouts."""
    if side not in SIDES:
        raise library.InputError(f"side: expected 'from' or 'to', found {shown(side)}")
    number, count = c.c_int32(SIDES.index(side)), c.c_int32()
    library.call("plan_get_stored_count", plan.handle, number, c.byref(count))
    out = []
    for index in range(count.value):
        found = library.asked(
            "plan_get_stored_buffer", library.StoredBuffer(), plan.handle, number, c.c_int32(index)
        )
        shape = tuple(found.shape[: found.dims])
        name, dtype = found.name.decode(errors="replace"), found.dtype.decode()
        out.append(StoredBuffer(found.rank, name, shape, dtype, found.bytes))
    return out


def takes_buffers(plan, *given) -> bool:
    """Whether these are dicts of buffers, and not shards by tensor."""
    return plan.has_buffers and any(isinstance(each, Mapping) for each in given)


def bytes_of(array, name, writable=False) -> Memory:
    """The array's memory, whatever its elements are."""
    try:
        return memory_of(array, name, writable)
    except library.InputError:
        # Neither the buffer protocol nor every DLPack knows bf16 and the 8-bit floating types, of
        # which torch and NumPy (ml_dtypes) can show the bytes.
        view = getattr(array, "view", None)
        torch = sys.modules.get("torch")
        try:
            if isinstance(array, getattr(torch, "Tensor", ())):
                return memory_of(array.detach().view(torch.uint8), name, writable)
            if callable(view) and hasattr(array, "__array_interface__"):
                return memory_of(view("u1"), name, writable)
        except (RuntimeError, TypeError, ValueError):
            pass  # the first error says what is wrong
        raise


class RankBuffers:
    """Buffers by name, of one rank, for as long as the plan is run on them."""

    def __init__(self, plan, rank, source, destination, names=("source", "destination")):
        self._keeps = []
        lent = [self._lent(given, name) for given, name in zip((source, destination), names)]
        arguments = [part for array, count in lent for part in (array, c.c_int32(count))]
        try:
            self._handle = library.Handle(
                "rank_buffers", "rank_buffers_create", plan.handle, c.c_int32(rank), *arguments
            )
        except library.InputError as error:
            text = str(error)
            for side, name in zip(SIDES, names):
                if text.startswith(side + ":"):
                    raise library.InputError(name + text[len(side) :]) from None
            raise
        self._keeps.append(plan)
        self.shards = self._shards(plan.tensor_count)

    def _lent(self, given: Mapping, name):
        if given is None:
            given = {}
        if not isinstance(given, Mapping):
            raise library.InputError(
                f"{name}: expected a dict of arrays by the names of buffers, found {shown(given)}"
            )
        array = (library.LentBuffer * max(len(given), 1))()
        for each, (key, value) in zip(array, given.items()):
            memory = bytes_of(value, f"{name}[{shown(key)}]", writable=name.startswith("dest"))
            each.struct_size = c.sizeof(library.LentBuffer)
            each.name = library.encoded(name, text_option(name, key))
            each.data, each.bytes = memory.address or None, memory.size
            self._keeps.append((memory, value))
        return array, len(given)

    def _shards(self, tensors):
        array = (library.Shards * max(tensors, 1))()
        for each in array:
            each.struct_size = c.sizeof(library.Shards)
        library.call(
            "rank_buffers_get_shards", self._handle.pointer, array, c.c_int32(tensors)
        )
        return [
            (
                Memory(each.source or 0, each.source_bytes, self),
                Memory(each.destination or 0, each.destination_bytes, self),
            )
            for each in array[:tensors]
        ]

    def gather(self):
        library.long_call("rank_buffers_gather", self._handle.pointer, keeps=self)

    def scatter(self):
        library.long_call("rank_buffers_scatter", self._handle.pointer, keeps=self)
