# SPDX-License-Identifier: BSD-3-Clause
"""The commands of the program as functions that return what `--json` prints, as dicts and lists
(tools/json-schemas.md). Options are the program's, with _ for -: memory_limit=2**30, cold=True,
planner=["p2p", "auto"] for one that is given twice."""

import json
import os
from typing import Any, Dict, Iterable, List, Union

from . import _library as library
from ._layouts import dtype_text, mesh_texts, shape_of
from ._plan import asked_of, plan


def command(*arguments: str) -> str:
    """What `reshard ARGUMENTS` prints, for plan, simulate, replay, sweep, calibrate and topo.

    Raises InputError and so on with the program's sentence; Findings, which carries the report,
    where a check that was asked for did not hold.
    """
    return library.command(arguments)


def _words(options):
    for name, value in options.items():
        word = "--" + name.replace("_", "-")
        for each in value if isinstance(value, (list, tuple)) else [value]:
            if each is True:
                yield word
            elif each is not None and each is not False:
                yield from (word, str(each))


_RUN_OPTIONS = ("transport", "nccl_version", "cold", "data_budget")


def _asked(name, *arguments, **options):
    return json.loads(command(name, *arguments, *_words(options), "--json"))


def simulate(*request, data: str = "full", **options) -> Dict[str, Any]:
    """Plans, proves, moves every rank's bytes in this process, times, compares with the bound. The
    request and options are those of `plan`; data: "full" or "proof" (moves nothing). Further
    options are the program's: transport="ideal", nccl_version, cold=True, data_budget."""
    run = {name: options.pop(name) for name in _RUN_OPTIONS if name in options}
    return _asked("simulate", *asked_of(*request, **options).words(), data=data, **run)


def bound(*request, **options) -> Dict[str, int]:
    """The least time that the topology allows any plan of a request, in picoseconds: `bound_ps`,
    and `cut_ps`, `volume_ps`, `latency_ps`, `price_ps`, `holder_ps`, of which it is the greatest.
    """
    return plan(*request, **{"planner": "p2p", **options}).bound


def sweep(shape, mesh, dtype="f32", **options) -> Dict[str, Any]:
    """All pairs of placements of one tensor, by each planner: `rows` and `summary`. mesh: one, or a
    list of texts; placements="R,S(0)", planner, topology ... as `reshard sweep` has them.
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
    """A trace: a file, or the lines of one as dicts (traces/README.md; the first may be left out).

    Raises Findings where the trace is at fault, as where it hangs.
    """
    if isinstance(trace, (str, os.PathLike)):
        return _asked("replay", os.fspath(trace), **options)
    lines = list(trace)
    if not lines or "reshard_trace" not in lines[0]:
        lines.insert(0, {"reshard_trace": 1})
    import tempfile  # slow to import, seldom needed

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        return _asked("replay", path, **options)


def compare(a: Dict[str, Any], b: Dict[str, Any]) -> Dict[str, Any]:
    """Two reports, as the functions above return them, side by side: what differs."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, report in (("a", a), ("b", b)):
            paths.append(os.path.join(folder, name))
            with open(paths[-1], "w", encoding="utf-8") as file:
                json.dump(report, file)
        return _asked("compare", *paths)


def topologies() -> List[Dict[str, str]]:
    """Those that are built in: `name`, `summary`."""
    return _asked("topo", "list")["topologies"]


def topology(name: str) -> Dict[str, Any]:
    """What is known of a machine: a preset, "NAME:NODES", or a file."""
    return _asked("topo", "show", name)
