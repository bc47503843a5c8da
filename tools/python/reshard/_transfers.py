# SPDX-License-Identifier: BSD-3-Clause
"""A model's transfer: layouts, plan, report, questions, and runs on buffers by name."""

import ctypes as c
import functools
import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import _library as library
from ._buffers import StoredBuffer
from ._commands import _lines, _without, _words
from ._execute import execute
from ._layouts import dtype_text, rank_number, shown, text_option, whole_number
from ._local import execute_all
from ._plan import Plan, planned_job
from ._requests import Asked, options_of


_COPIES = "copies.jsonl"  # the name of copies in messages


class Place(NamedTuple):
    """An element of a buffer of a rank."""

    rank: int
    buffer: str
    index: Tuple[int, ...]  # type: ignore[assignment]  # not that of a tuple


class ModelTransfer:
    """What reshard.models.transfer returns. It is planned and proved when something asks for the
    plan, or for what comes from it; equal transfers are planned once."""

    def __init__(self, source, target, ranks, to_ranks, dtype, options):
        self.source = source  # a reshard.models.Side, as is target
        self.target = target
        self._texts = {
            "from": text_option("source", source.words),
            "to": text_option("target", target.words),
            "ranks": _ranks_text("ranks", ranks),
            "to_ranks": _ranks_text("to_ranks", to_ranks),
            "dtype": None if dtype is None else dtype_text(dtype),
        }
        self._options = options_of(**options)
        self._buffers: Dict[str, List[StoredBuffer]] = {}
        self.layouts: str  # a file of layouts (docs/check.md)
        self.notes: Tuple[str, ...]  # what is assumed or left out, a sentence each
        self.layouts, self.notes = self._written()

    def _written(self):
        model = self.source.model
        config = library.encoded("config", model.text)
        texts = {name: library.encoded(name, text) for name, text in self._texts.items()}
        name = library.encoded("config", model.name)
        given = library.ModelTexts(
            config=config, config_bytes=len(config), config_name=name, **texts
        )
        layouts, size, notes, notes_size = c.c_void_p(), c.c_int64(), c.c_void_p(), c.c_int64()
        results = [c.byref(each) for each in (layouts, size, notes, notes_size)]
        keeps = (given, texts, config, name)
        library.long_call("model_write_layouts", c.byref(given), *results, keeps=keeps)
        lines = library.taken(layouts, size)
        return lines, tuple(library.taken(notes, notes_size).splitlines())

    # ---- the plan

    @functools.cached_property
    def plan(self) -> Plan:
        """A plan of layouts, as of `plan_layouts`."""
        return planned_job(Asked((), self._options, text=self.layouts))

    @property
    def time_ps(self) -> int:
        """Simulated, alone on the topology, with the topology's own transport."""
        return self.plan.time_ps

    @property
    def bound_ps(self) -> int:
        """A lower bound of the time of any plan on the topology."""
        return self.plan.bound_ps

    def report(self, **options) -> Dict[str, Any]:
        """Schema reshard.model/1 (tools/json-schemas.md): seconds, bound, bytes, by stage and kind
        of tensor. Options are those of `reshard model`, such as what_if="tp=8,16"."""
        given = self._options
        limits = {
            "topology": given.topology,
            "planner": given.planner,
            "memory_limit": given.memory_limit or None,
            "extra_memory": given.extra_memory,
            "free_source": given.free_source,
        }
        return self._asked({**limits, **options})

    # ---- questions

    def buffers(self, side: str, rank: Optional[int] = None) -> List[StoredBuffer]:
        """The buffers of all ranks, or of one, before ("from") or after ("to") the transfer: what
        `execute` takes."""
        if text_option("side", side) not in self._buffers:
            self._buffers[side] = self.plan.buffers(side)  # of large models many
        found = self._buffers[side]
        return [each for each in found if rank is None or each.rank == rank]

    def where(self, what: str, rank: Optional[int] = None) -> List[Dict[str, Any]]:
        """The `parts` of reshard.layout/1 that `reshard model --where WHAT --rank RANK` prints:
        which ranks have elements of a tensor, or of a buffer of a rank, and where in it."""
        return self._parts("what", what, rank)

    def _parts(self, field, what, rank=None):
        """field: names `what` in messages."""
        number = None if rank is None else rank_number(rank)
        try:
            return self._asked({"where": text_option(field, what), "rank": number})["parts"]
        except library.InputError as error:
            raise library.InputError(re.sub("^where:", f"{field}:", str(error))) from None

    def source_of(
        self, name: str, index: Sequence[int], rank: Optional[int] = None
    ) -> List[Place]:
        """All places before the transfer of an element after it. name, index: of a buffer that the
        rank has after the transfer; without a rank, of a tensor. "model." can be left out.

        Raises InputError for padding, which comes from nowhere.
        """
        text_option("name", name)
        numbers = [whole_number("index", each) for each in _index(index)]
        if rank is not None:
            name, numbers = self._element_of(name, numbers, rank_number(rank))
        asked = f"{name}[{','.join(map(str, numbers))}]" if numbers else name
        return [
            Place(part["rank"], part["buffer"], _index_at(part["offset"], part["shape"]))
            for part in self._parts("name", asked)
            if part["side"] == "from"
        ]

    def _element_of(self, name, index, rank):
        """The tensor and the index in it of an element of a buffer."""
        parts = [
            part
            for part in self._parts("name", name, rank)
            if (part["side"], part["rank"]) == ("to", rank)
            and part["buffer"] in (name, "model." + name)
        ]
        if not parts:
            raise library.InputError(
                f"name: expected a buffer in which rank {rank} has elements after the transfer, "
                f"found {shown(name)}"
            )
        shape, offset = parts[0]["shape"], 0
        if len(index) != len(shape) or any(i >= extent for i, extent in zip(index, shape)):
            raise library.InputError(
                f"index: expected one of {name}, whose shape is {shape}, found {list(index)}"
            )
        for i, extent in zip(index, shape):
            offset = offset * extent + i
        for part in parts:
            within = _index_in(part, offset)
            if within is not None:
                return part["tensor"], within
        raise library.InputError(f"index: expected elements of a tensor, found padding of {name}")

    def check(
        self, copies: Union[str, "os.PathLike[str]", Iterable], **options
    ) -> Dict[str, Any]:
        """Judges copies between the buffers of the two sides by any planner (docs/check.md).
        copies: their lines, as dicts or texts, or the path of a file of them. Options are those of
        `reshard.check`. Lines in the report are those of copies, from 1.

        Raises Findings, which carries the report, if something is wrong.
        """
        text, before = _after_layouts(self.layouts, _copy_lines(copies))
        try:
            report = self._run("check", _COPIES, text, options)
        except library.Findings as found:
            found.text = json.dumps(_counted_after(before, json.loads(found.text)))
            raise
        except library.InputError as error:
            said = re.sub(
                f"({re.escape(_COPIES)}:)(\\d+)",
                lambda m: m[1] + str(max(int(m[2]) - before, 1)),
                str(error),
            )
            raise library.InputError(said) from None
        return _counted_after(before, report)

    def _asked(self, options):
        name = os.path.basename(self.source.model.name) or "config.json"
        sides = {key: text for key, text in self._texts.items() if text is not None}
        return self._run("model", name, self.source.model.text, {**sides, **options})

    def _run(self, name, file, content, options):
        """What a command prints about a file with that content."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, file)
            with open(path, "w", encoding="utf-8", newline="") as written:
                written.write(content)
            try:
                text = library.command([name, path, *_words(options), "--json"])
            except library.Findings as found:
                found.text = found.text.replace(folder + os.sep, "")
                raise _without(folder, found)
            except library.InputError as error:
                said = re.sub(
                    "^--([a-z-]+):", lambda m: m[1].replace("-", "_") + ":", str(error)
                )
                raise _without(folder, library.InputError(said)) from None
            except library.ReshardError as error:
                raise _without(folder, error) from None
        return json.loads(text.replace(folder + os.sep, ""))

    # ---- runs

    def execute(
        self,
        rank: int,
        source: Optional[Mapping],
        destination: Optional[Mapping],
        transport: Any = None,
    ) -> None:
        """Runs the rank's part, as `reshard.execute`: source and destination are dicts of all its
        buffers before and after, by their names (`buffers`); transport is torch.distributed, one of
        its process groups, a communicator of mpi4py, or an object with exchange(sends, receives).
        """
        execute(self.plan, rank, source or {}, destination or {}, transport)

    def execute_all(
        self, sources: Mapping[int, Mapping], destinations: Mapping[int, Mapping]
    ) -> None:
        """Runs all ranks' parts in this process, on dicts of buffers by rank."""
        ranks = self.plan.ranks
        for name, given in (("sources", sources), ("destinations", destinations)):
            if not isinstance(given, Mapping):
                raise library.InputError(
                    f"{name}: expected a dict of buffers by rank, found {shown(given)}"
                )
            for rank in given:
                if rank not in ranks:
                    raise library.InputError(
                        f"{name}: expected ranks of the transfer, found {shown(rank)}"
                    )
        sides = [[given.get(rank) or {} for rank in ranks] for given in (sources, destinations)]
        execute_all(self.plan, *sides)

    def __repr__(self) -> str:
        return f"<reshard.models.ModelTransfer {self._texts['from']} -> {self._texts['to']}>"


def _ranks_text(name, value):
    if value is None or isinstance(value, str):
        return value
    try:
        return ",".join(str(rank_number(rank)) for rank in value)
    except TypeError:
        raise library.InputError(
            f"{name}: expected ranks such as '8-11' or numbers, found {shown(value)}"
        ) from None


def _index(index):
    if hasattr(index, "__index__"):
        return (index,)
    if isinstance(index, (list, tuple)):
        return index
    raise library.InputError(f"index: expected a tuple of numbers, found {shown(index)}")


def _index_at(offset, shape):
    out = []
    for extent in reversed(shape):
        out.append(offset % extent)
        offset //= extent
    return tuple(reversed(out))


def _index_in(part, offset):
    """The index in its tensor of the element at an offset of the buffer; None: it is not in it."""
    rest, out = offset - part["offset"], list(part["lo"])
    if rest < 0:
        return None
    strides = part["strides"]
    for dim in sorted(range(len(out)), key=lambda dim: -strides[dim]):
        if part["extents"][dim] > 1:
            steps, rest = divmod(rest, strides[dim])
            if steps >= part["extents"][dim]:
                return None
            out[dim] += steps
    return out if rest == 0 else None


def _copy_lines(copies):
    if isinstance(copies, (str, os.PathLike)):
        path = os.fsdecode(copies)
        try:
            with open(path, encoding="utf-8") as file:
                return file.read()
        except (OSError, ValueError) as error:
            raise library.InputError(
                f"copies: expected a file that can be read, found {shown(path)}: {error}"
            ) from None
    if isinstance(copies, Mapping) or not isinstance(copies, Iterable):
        return _lines("copies", copies)  # refused
    lines = []
    for copy in copies:
        is_line = isinstance(copy, str) and "\n" not in copy.rstrip("\n")
        lines.append(copy.rstrip("\n") + "\n" if is_line else _lines("copies", [copy]))
    return "".join(lines)


def _after_layouts(layouts, copies):
    """A file of both, and by how much the copies' lines have been moved in it. A header that the
    copies come with is that of the file."""
    count = layouts.count("\n")
    header, _, rest = copies.partition("\n")
    if '"reshard_check"' not in header:
        return layouts + copies, count
    return header + layouts[layouts.index("\n") :] + rest, count - 1


def _counted_after(before, report):
    for finding in report["findings"]:
        finding["lines"] = [line - before for line in finding["lines"]]
    return report
