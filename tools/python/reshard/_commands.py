# SPDX-License-Identifier: BSD-3-Clause
"""The program's commands as functions that return what `--json` prints, as dicts and lists
(tools/json-schemas.md). Options are the program's, with _ for -: memory_limit=2**30, cold=True, and
planner=["p2p", "auto"] for a repeated option."""

import json
import os
from typing import Any, Dict, Iterable, List, Union

from . import _library as library
from ._layouts import dtype_text, mesh_texts, shape_of, shown, text_option
from ._plan import plan
from ._requests import asked_of


def command(*arguments: str) -> str:
    """What `reshard ARGUMENTS` prints, for plan, simulate, replay, sweep, calibrate, topo, compare
    and ops.

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
    if isinstance(trace, (dict, bytes, bytearray)) or not hasattr(trace, "__iter__"):
        raise library.InputError(f"trace: expected a file or lines as dicts, found {shown(trace)}")
    lines = list(trace)
    for line in lines:
        if not isinstance(line, dict):
            raise library.InputError(f"trace: expected lines as dicts, found {shown(line)}")
    if not lines or "reshard_trace" not in lines[0]:
        lines.insert(0, {"reshard_trace": 1})
    content = "".join(_json("trace", line) + "\n" for line in lines)
    return _asked_of_files("replay", {"trace.jsonl": content}, **options)


def compare(a: Dict[str, Any], b: Dict[str, Any]) -> Dict[str, Any]:
    """Compares two reports that the functions above returned, and returns the differences."""
    return _asked_of_files("compare", {"a": _json("a", a), "b": _json("b", b)})


def topologies() -> List[Dict[str, str]]:
    """The built-in topologies: `name`, `summary`."""
    return _asked("topo", "list")["topologies"]


def topology(name: str) -> Dict[str, Any]:
    """The description of a machine: a preset, "NAME:NODES", or a file."""
    return _asked("topo", "show", _value("name", name))
