# SPDX-License-Identifier: BSD-3-Clause
"""Digests of what a rank's buffers hold, which `reshard digest --expect` compares with those that
are expected (docs/digest.md)."""

import contextlib
import ctypes as c
import json
import os
import tempfile
from collections.abc import Mapping
from typing import Any, Dict, Iterable, Union

from . import _library as library
from ._buffers import SIDES, bytes_of
from ._commands import _json, _lines, _without
from ._layouts import shown, text_option


@contextlib.contextmanager
def _file_of(layouts):
    """The path of a file, or of lines written to one."""
    if isinstance(layouts, (str, os.PathLike)):
        yield os.fsdecode(layouts)
        return
    text = _lines("layouts", layouts, {"reshard_check": 1})
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "layouts")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        try:
            yield path
        except library.ReshardError as error:
            raise _without(folder, error) from None


def digest(
    layouts: Union[str, os.PathLike, Iterable[Dict[str, Any]]],
    rank: int,
    buffers: Mapping[str, Any],
    side: str = "to",
    rows: int = 0,
) -> Dict[str, Any]:
    """The digests of what this rank holds, to be gathered from all ranks.

    layouts: a file as `reshard check` reads it, or its lines as dicts. buffers: by name, arrays in
    host memory with the buffer protocol or DLPack, contiguous, of any dtype of the right size, as
    all of the buffer is, padding included. rows: of a block, as `reshard digest --rows`.
    """
    if not isinstance(buffers, Mapping):
        raise library.InputError(f"buffers: expected a dict of arrays, found {shown(buffers)}")
    if side not in SIDES:
        raise library.InputError(f"side: expected 'from' or 'to', found {shown(side)}")
    numbers = []
    for name, value, most in (("rank", rank, 2**31 - 1), ("rows", rows, 2**62)):
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise library.InputError(f"{name}: expected an integer, found {shown(value)}")
        numbers.append(value.__index__())
        if not 0 <= numbers[-1] <= most:
            raise library.InputError(f"{name}: expected 0 to {most}, found {numbers[-1]}")
    held = (library.HeldBuffer * max(len(buffers), 1))()
    keeps = []
    for each, (name, array) in zip(held, buffers.items()):
        memory = bytes_of(array, f"buffers[{shown(name)}]")
        each.struct_size = c.sizeof(library.HeldBuffer)
        each.name = library.encoded("buffers", text_option("buffers", name))
        each.data, each.bytes = memory.address or None, memory.size
        keeps.append((memory, array))
    text, size = c.c_void_p(), c.c_int64()
    with _file_of(layouts) as path:
        library.long_call(
            "digest_buffers",
            library.encoded("layouts", path),
            side.encode(),
            c.c_int32(numbers[0]),
            c.c_int64(numbers[1]),
            held,
            c.c_int32(len(buffers)),
            c.byref(text),
            c.byref(size),
            keeps=keeps,
        )
    return json.loads(library.taken(text, size))


def gather_digests(digests: Iterable[Dict[str, Any]]) -> Dict[str, Any]:
    """The digests of several ranks as one dict, which `json.dump` writes for `reshard digest
    --expect`. Equal ones of several ranks are kept once."""
    if isinstance(digests, (dict, str, bytes)) or not hasattr(digests, "__iter__"):
        raise library.InputError(f"digests: expected a list of dicts, found {shown(digests)}")
    words = [library.encoded("digests", _json("digests", each)) for each in digests]
    array = (c.c_char_p * max(len(words), 1))(*words)
    text, size = c.c_void_p(), c.c_int64()
    library.long_call("digest_gather", array, c.c_int32(len(words)), c.byref(text), c.byref(size))
    return json.loads(library.taken(text, size))
