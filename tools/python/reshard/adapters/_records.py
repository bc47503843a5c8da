# SPDX-License-Identifier: BSD-3-Clause
"""What the adapters share: records, which are objects of a framework or their JSON, read strictly,
and the program around each adapter. A reader takes a value and where it is."""

import json
import os
import sys

from .. import InputError
from .._layouts import shown


def refuse(where, expected, found):
    raise InputError(f"{where}: expected {expected}, found {shown(found)}")


class Record:
    """Reads an object, without its private fields, or a dict: the fields that `spec` lists and no
    others, as those could change what is meant. `name:kind` is needed, `name?:kind` is not, and
    `name?` is known and not read. Fields of other kinds are keywords. Returns a dict."""

    def __init__(self, spec="", **readers):
        listed = [word.partition(":")[::2] for word in spec.split()]
        self._readers = {
            **{name.rstrip("?"): _KINDS[kind] for name, kind in listed if kind},
            **readers,
        }
        self._others = {name.rstrip("?") for name, _ in listed if name.endswith("?")}

    def __call__(self, value, where):
        fields = value if isinstance(value, dict) else getattr(value, "__dict__", None)
        if fields is None or isinstance(value, type):
            refuse(where, f"a record with {', '.join(self._readers)}", value)
        if fields is not value:
            fields = {name: each for name, each in fields.items() if not name.startswith("_")}
        for name in self._readers:
            if name not in fields and name not in self._others:
                raise InputError(f"{where}: expected the field {name}, which is missing")
        for name in fields:
            if name not in self._readers and name not in self._others:
                raise InputError(f"{where}: {shown(name)} is not known, and could change the rest")
        return {
            name: read(fields[name], f"{where}.{name}")
            for name, read in self._readers.items()
            if name in fields
        }


def each_of(value, where):
    """(where it is, entry) of a list."""
    if isinstance(value, (str, bytes, bytearray, dict)) or not hasattr(value, "__iter__"):
        refuse(where, "a list", value)
    return [(f"{where}[{i}]", entry) for i, entry in enumerate(value)]


def list_of(read):
    return lambda value, where: [read(entry, place) for place, entry in each_of(value, where)]


def tuple_of(*reads):
    def reader(value, where):
        entries = each_of(value, where)
        if len(entries) != len(reads):
            refuse(where, f"{len(reads)} entries", value)
        return [read(entry, place) for read, (place, entry) in zip(reads, entries)]

    return reader


def dict_of(read):
    def reader(value, where):
        if not isinstance(value, dict):
            refuse(where, "a dict by name", value)
        return {words(name, where): read(entry, f"{where}.{name}") for name, entry in value.items()}

    return reader


def perhaps(read):
    return lambda value, where: None if value is None else read(value, where)


def by_rank(read):
    """Of a list with an entry per rank, or of a dict by rank: a dict by rank."""

    def reader(value, where):
        if not isinstance(value, dict):
            return dict(enumerate(list_of(read)(value, where)))
        out = {}
        for key, entry in value.items():
            text = str(key)
            if isinstance(key, bool) or not (text.isascii() and text.isdigit() and len(text) < 10):
                refuse(where, "ranks as keys", key)
            out[int(text)] = read(entry, f"{where}[{text}]")
        return out

    return reader


def none(value, where):
    if value is not None:
        refuse(where, "none", value)


def whole(value, where, least=0):
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        refuse(where, f"an integer of at least {least}", value)
    return value


def positive(value, where):
    return whole(value, where, 1)


wholes = list_of(whole)


def words(value, where):
    if not isinstance(value, str) or not value:
        refuse(where, "a text", value)
    return str(value)


_KINDS = {
    "any": lambda value, where: value,
    "none": none,
    "text": words,
    "whole": whole,
    "positive": positive,
    "wholes": wholes,
}


def parts_of(value, divisor, where):
    """value / divisor, where that is whole."""
    if value % divisor:
        refuse(where, f"a multiple of {divisor}", value)
    return value // divisor


def entry_of(table, key, where, what):
    if key not in table:
        refuse(where, what, key)
    return table[key]


def box_of(start, extents, where):
    """As a part of a line; a scalar needs no box."""
    if len(start) != len(extents):
        refuse(where, f"an extent for each of {start}", extents)
    ends = ",".join(f"{lo}:{lo + n}" for lo, n in zip(start, extents))
    return {"box": ends} if ends else {}


class Buffers:
    """Buffers that are boxes of tensors: their lines, and their ends of copies by key."""

    def __init__(self):
        self.lines, self.ends, self._counts = [], {}, {}

    def add(self, side, rank, tensor, dtype, start, extents, key, where):
        """Its name is the tensor's, with a number from the rank's second one on."""
        if key in self.ends:
            refuse(where, "each part once", key)
        part = {"tensor": tensor, **box_of(start, extents, where)}
        count = self._counts[side, rank, tensor] = self._counts.get((side, rank, tensor), 0) + 1
        name = tensor if count == 1 else f"{tensor}#{count}"
        self.ends[key] = {"rank": rank, "buffer": name}
        self.lines.append({"side": side, "buffer": name, "ranks": str(rank), "shape": extents,
                           "dtype": dtype, "parts": [part]})  # fmt: skip


def _unique(pairs):
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a field is given twice")
    return fields


def _read(path, lines):
    try:
        with open(path, encoding="utf-8-sig") as file:
            texts = [line for line in file if line.strip()] if lines else [file.read()]
        return [json.loads(text, object_pairs_hook=_unique) for text in texts]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: expected JSON: {error}") from None


def _lines(path, layouts_path, copies, layouts):
    (found,) = _read(path, False)
    given = _read(layouts_path, True) if layouts_path else []
    for line in given:
        if not isinstance(line, dict):
            refuse(layouts_path, "lines of tensors and buffers", line)
    given = [line for line in given if "reshard_check" not in line]
    if layouts is not None:
        given = list(layouts(found, given))
    elif not given:
        raise InputError("expected LAYOUTS, as the record does not say what lies where")
    return [{"reshard_check": 1}, *given, *copies(found)]


def main(name, copies, layouts=None):
    """Prints all lines, or says in one sentence what is wrong and returns 2. layouts(record, given)
    yields the lines to print for those that the file LAYOUTS has."""
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        print(f"usage: python3 -m reshard.adapters.{name} RECORD.json [LAYOUTS]", file=sys.stderr)
        return 2
    try:
        lines = _lines(sys.argv[1], "".join(sys.argv[2:]), copies, layouts)
        sys.stdout.write("".join(json.dumps(line) + "\n" for line in lines))
        sys.stdout.flush()
    except InputError as error:
        print(f"reshard: error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
