# SPDX-License-Identifier: BSD-3-Clause
"""The program's commands as functions that return what `--json` prints, as dicts and lists
(tools/json-schemas.md). Options are the program's, with _ for -: memory_limit=2**30, cold=True, and
planner=["p2p", "auto"] for a repeated option."""

import json
import os
from typing import Any, Dict, Iterable, List, Union

from . import _library as library
from ._layouts import dtype_text, mesh_texts, shape_of, shown, text_option
from ._plan import Plan, plan, planned_job
from ._requests import Asked, asked_of, job_of, options_of


def command(*arguments: str) -> str:
    """What `reshard ARGUMENTS` prints, for plan, simulate, replay, sweep, model, kv, calibrate,
    topo, check, digest, layout, where, compare and ops.

    Raises InputError and the other errors with the program's message, and Findings, which carries
    the report, if a requested check did not hold.
    """
    return library.command([text_option("argument", word) for word in arguments])


def _words(options):
    for name, value in options.items():
        word = "--" + name.replace("_", "-")
        for each in value if isinstance(value, (list, tuple)) else [value]:
            if each is True:
                yield word
            elif each is not None and each is not False:
                yield from (word, _value(name, each))


def _value(name, value):
    if not isinstance(value, (str, int, float, os.PathLike)):
        raise library.InputError(f"{name}: expected a string or a number, found {shown(value)}")
    return os.fsdecode(value) if isinstance(value, os.PathLike) else str(value)


_RUN_OPTIONS = ("transport", "nccl_version", "cold", "data_budget")


def _asked(name, *arguments, **options):
    return json.loads(command(name, *arguments, *_words(options), "--json"))


def _asked_of_files(name, files, **options):
    """Runs a command on contents, given by the names to show in the report: they are written
    to a folder with a random name, which is removed from texts."""
    import tempfile  # slow to import, seldom needed

    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, each) for each in files]
        for path, content in zip(paths, files.values()):
            with open(path, "w", encoding="utf-8") as file:
                file.write(content)
        try:
            text = command(name, *paths, *_words(options), "--json")
        except library.Findings as found:
            found.text = found.text.replace(folder + os.sep, "")
            raise _without(folder, found)
        except library.ReshardError as error:
            raise _without(folder, error) from None
    return json.loads(text.replace(folder + os.sep, ""))


def _without(folder, error):
    error.args = (str(error).replace(folder + os.sep, ""),)
    return error


def _json(name, value):
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise library.InputError(f"{name}: expected a JSON value: {error}") from None


def simulate(*request, data: str = "full", **options) -> Dict[str, Any]:
    """Plans, proves, moves every rank's bytes in this process, times the plan and compares it with
    the bound. The request and options are those of `plan`; data: "full" or "proof" (moves nothing).
    Other options are the program's: transport="ideal", nccl_version, cold=True, data_budget."""
    run = {name: options.pop(name) for name in _RUN_OPTIONS if name in options}
    return _asked("simulate", *asked_of(*request, **options).words(), data=data, **run)


def bound(*request, **options) -> Dict[str, int]:
    """Lower bounds of the time that any plan of a request takes on the topology, in picoseconds:
    `cut_ps`, `volume_ps`, `latency_ps`, `price_ps` and `holder_ps`, and `bound_ps`, the greatest of
    them.
    """
    return plan(*request, **{"planner": "p2p", **options}).bound


def sweep(shape, mesh, dtype="f32", **options) -> Dict[str, Any]:
    """All pairs of placements of one tensor through each planner: `rows` and `summary`. mesh: one,
    or a list of strings; placements="R,S(0)", planner, topology and the other options of `reshard
    sweep`.
    """
    several = isinstance(mesh, list) and all(isinstance(each, str) for each in mesh)
    return _asked(
        "sweep",
        shape=",".join(map(str, shape_of(shape))),
        mesh=mesh if several else mesh_texts(mesh)[0],
        dtype=dtype_text(dtype),
        **options,
    )


def replay(trace: Union[str, os.PathLike, Iterable[Dict[str, Any]]], **options) -> Dict[str, Any]:
    """Replays a trace: a file, or its lines as dicts (traces/README.md; the first may be left out).

    Raises Findings if the trace itself is at fault, for instance if it hangs.
    """
    if isinstance(trace, (str, os.PathLike)):
        return _asked("replay", os.fsdecode(trace), **options)
    lines = _lines("trace", trace, {"reshard_trace": 1})
    return _asked_of_files("replay", {"trace.jsonl": lines}, **options)


def _lines(name, given, header=None):
    """Lines of a file, with the header if it is left out."""
    if isinstance(given, (dict, str, bytes, bytearray)) or not hasattr(given, "__iter__"):
        what = "a file or lines" if header else "lines"
        raise library.InputError(f"{name}: expected {what} as dicts, found {shown(given)}")
    lines = list(given)
    for line in lines:
        if not isinstance(line, dict):
            raise library.InputError(f"{name}: expected lines as dicts, found {shown(line)}")
    if header and (not lines or next(iter(header)) not in lines[0]):
        lines.insert(0, header)
    return "".join(_json(name, line) + "\n" for line in lines)


def plan_layouts(
    layouts: Union[str, os.PathLike, Iterable[Dict[str, Any]]], **options
) -> Plan:
    """Plans and proves the transfer of a model between the buffers of its ranks (docs/check.md).
    layouts: a file, or the lines of tensors and buffers as dicts, as `check` takes them. Options
    are those of `plan_job`, and so is the plan; `execute` and `execute_all` take its buffers."""
    if isinstance(layouts, (str, os.PathLike)):
        return planned_job(job_of(layouts, options_of(**options), "layouts"))
    text = _lines("layouts", layouts, {"reshard_check": 1})
    return planned_job(Asked((), options_of(**options), text=text))


def check(
    layouts: Union[str, os.PathLike, Iterable[Dict[str, Any]]],
    copies: Iterable[Dict[str, Any]] = (),
    **options,
) -> Dict[str, Any]:
    """Judges copies made by any planner (docs/check.md). layouts: a file, with its copies; or the
    lines of tensors and buffers as dicts. copies: the lines of copies. Options are those of
    `reshard check`: topology="dgx-h100:8", planner, transport, without="each".

        check([{"tensor": "w", "shape": [8, 4], "dtype": "bf16"},
               {"side": "from", "tensor": "w", "mesh": "2", "placements": "S(0)"},
               {"side": "to", "tensor": "w", "mesh": "1", "ranks": "2"}],
              [{"from": {"rank": 0, "tensor": "w", "box": "0:4,:"}, "to": {"rank": 2}}, ...])

    Raises Findings, which carries the report, if something is wrong.
    """
    if isinstance(layouts, (str, os.PathLike)):
        if copies:
            raise library.InputError("copies: expected none, as the file has them")
        return _asked("check", os.fsdecode(layouts), **options)
    text = _lines("layouts", layouts, {"reshard_check": 1}) + _lines("copies", copies)
    return _asked_of_files("check", {"copies.jsonl": text}, **options)


def compare(a: Dict[str, Any], b: Dict[str, Any], fail_on: str = "") -> Dict[str, Any]:
    """Compares two reports that the functions above returned, and returns the differences. fail_on:
    limits such as "time>5%,bytes>0": raises Findings if a figure of b is above that of a by more.
    """
    reports = {"a": _json("a", a), "b": _json("b", b)}
    return _asked_of_files("compare", reports, fail_on=fail_on or None)


def topologies() -> List[Dict[str, str]]:
    """The built-in topologies: `name`, `summary`."""
    return _asked("topo", "list")["topologies"]


def topology(name: str) -> Dict[str, Any]:
    """The description of a machine: a preset, "NAME:NODES", or a file."""
    return _asked("topo", "show", _value("name", name))
