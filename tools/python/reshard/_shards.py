# SPDX-License-Identifier: BSD-3-Clause
"""A rank's shards as callers give them: an array for a plan of one tensor, a list of arrays or a
dict by name for a plan of many."""

import ctypes as c
from collections.abc import Mapping
from typing import Any, List, Tuple

from . import _library as library
from ._layouts import shown
from ._memory import Memory, memory_of

Shards = List[Tuple[Memory, Memory]]  # source and destination by tensor


def arrays_of(plan, given, name) -> List[Tuple[str, Any]]:
    """By tensor: the array, or None, and its name in errors."""
    count = plan.tensor_count
    if isinstance(given, Mapping):
        found: List[Tuple[str, Any]] = [(name, None)] * count
        for key, array in given.items():
            try:
                number = plan.tensor_number(key)
            except library.InputError as error:
                raise library.InputError(f"{name}: {error}") from None
            if found[number][1] is not None:
                raise library.InputError(f"{name}: expected one array for {shown(key)}, found two")
            found[number] = (f"{name}[{shown(key)}]", array)
        return found
    if isinstance(given, (list, tuple)) and (len(given) == count or count > 1):
        if len(given) != count:
            raise library.InputError(
                f"{name}: expected {count} arrays, one per tensor, found {len(given)}"
            )
        return [(f"{name}[{number}]", array) for number, array in enumerate(given)]
    if given is None or count == 1:
        return [(name, given)] * count
    raise library.InputError(
        f"{name}: expected a list of {count} arrays, one per tensor, or a dict by name, found "
        f"{type(given).__name__}"
    )


def shards_of(plan, source, destination, names=("source", "destination")) -> Shards:
    """Raises InputError if an array is no such memory as memory_of takes."""
    given, taken = arrays_of(plan, source, names[0]), arrays_of(plan, destination, names[1])
    return [
        (
            memory_of(before, before_name, dtype=tensor.dtype),
            memory_of(after, after_name, writable=True, dtype=tensor.dtype),
        )
        for (before_name, before), (after_name, after), tensor in zip(given, taken, plan.tensors)
    ]


def lent(shards: Shards):
    """The same as an array of the library."""
    out = (library.Shards * max(len(shards), 1))()
    for each, (source, destination) in zip(out, shards):
        each.struct_size = c.sizeof(library.Shards)
        each.source, each.source_bytes = source.address or None, source.size
        each.destination, each.destination_bytes = destination.address or None, destination.size
    return out
