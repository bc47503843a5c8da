# SPDX-License-Identifier: BSD-3-Clause
"""Plans: made once per request, cached, and queried."""

import ctypes as c
import functools
import json
import os
import re
import zlib
from typing import Any, Dict, List, NamedTuple, Optional, Union

from . import _library as library
from ._files import content_digest, replace_file
from ._layouts import (
    dtype_text,
    mesh_texts,
    placements_text,
    rank_number,
    shape_of,
    shown,
    text_option,
    whole_number,
)
from ._operations import Program


class _Asked(NamedTuple):
    """The request and options as texts, for the command line and the library; None: not given."""

    mesh: str
    ranks: Optional[str]
    to_mesh: Optional[str]
    to_ranks: Optional[str]
    shape: str
    dtype: str
    source: str
    target: str
    topology: Optional[str]
    planner: str
    memory_limit: int
    topology_content: Optional[str] = None  # a digest, if it is a file

    def words(self) -> List[str]:
        given = [
            ("--mesh", self.mesh),
            ("--ranks", self.ranks),
            ("--to-mesh", self.to_mesh),
            ("--to-ranks", self.to_ranks),
            ("--shape", self.shape),
            ("--dtype", self.dtype),
            ("--from", self.source),
            ("--to", self.target),
            ("--topology", self.topology),
            ("--planner", self.planner),
            ("--memory-limit", str(self.memory_limit) if self.memory_limit else None),
        ]
        return [word for name, value in given if value is not None for word in (name, value)]


class Plan:
    """A proved plan. Sizes are in bytes, times in picoseconds."""

    def __init__(self, asked: _Asked):
        self._asked = asked
        names = ("mesh", "ranks", "to_mesh", "to_ranks", "shape", "dtype", "source", "target")
        texts = library.RequestTexts(
            **{name: library.encoded(name, getattr(asked, name)) for name in names}
        )
        request = library.Handle("request", "request_create", c.byref(texts))
        self._topology = None
        if asked.topology is not None:
            name = library.encoded("topology", asked.topology)
            self._topology = library.Handle("topology", "topology_create", name, keeps=())
        options = library.PlanOptions(
            planner=library.encoded("planner", asked.planner),
            memory_limit_bytes=asked.memory_limit,
        )
        topology = self._topology.pointer if self._topology else None
        self._handle = library.Handle(
            "plan",
            "plan_create",
            request.pointer,
            topology,
            c.byref(options),
            keeps=(request, self._topology),
        )
        self._dims = len(asked.shape.split(",")) if asked.shape else 0
        self._shapes: Dict[int, Any] = {}
        self._operations: Dict[int, Program] = {}
        self._programs: Dict[int, library.Handle] = {}
        self._facts = library.asked("plan_get_facts", library.PlanFacts(), self.handle)

    @property
    def planner(self) -> str:
        """The planner that made the steps; for "auto", the one that it chose."""
        return library.text_of("plan_planner", self.handle)

    @property
    def request(self) -> str:
        """ "bf16[8192,8192] S(0)R on 2x4 -> RS(1)"."""
        return library.text_of("plan_request", self.handle)

    @functools.cached_property
    def dtype(self) -> str:
        """ "bf16"."""
        return self.request.split("[", 1)[0]

    @functools.cached_property
    def fingerprint(self) -> int:
        """A number below 2^32 by which ranks recognise that they have the same plan."""
        facts = (self.step_count, self.received_bytes_total, self.peak_bytes_max)
        return zlib.crc32(repr((self.request, self.planner, facts)).encode())

    @property
    def handle(self):
        """The reshard_plan* of the C interface."""
        return self._handle.pointer

    @functools.cached_property
    def ranks(self) -> List[int]:
        """The ranks of source and destination together, ascending."""
        rank, found = c.c_int32(), []
        for index in range(self._facts.rank_count):
            library.call("plan_get_rank", self.handle, c.c_int32(index), c.byref(rank))
            found.append(rank.value)
        return found

    @property
    def step_count(self) -> int:
        return self._facts.step_count

    @property
    def received_bytes_max(self) -> int:
        """Bytes that the rank receiving most gets from other ranks, padding included."""
        return self._facts.received_bytes_max

    @property
    def received_bytes_total(self) -> int:
        return self._facts.received_bytes_total

    @property
    def peak_bytes_max(self) -> int:
        """Source, destination and temporaries of the fullest rank, however steps overlap."""
        return self._facts.peak_bytes_max

    @functools.cached_property
    def _times(self):
        topology = self._topology.pointer if self._topology else None
        times = library.Times()
        library.long_call("plan_get_times", self.handle, topology, c.byref(times), keeps=self)
        return times

    @property
    def time_ps(self) -> int:
        """Simulated, alone on the topology, with the topology's own transport."""
        return self._times.time_ps

    @property
    def bound_ps(self) -> int:
        """A lower bound of the time of any plan on the topology."""
        return self._times.bound_ps

    @functools.cached_property
    def steps(self) -> List[Dict[str, Any]]:
        """kind, axes, ranks, bytes, start_ps, end_ps, why, as in JSON."""
        return self.to_dict()["steps"]

    @functools.cached_property
    def adds(self) -> bool:
        """Whether any step does arithmetic on elements rather than move them."""
        return re.search(r"^step \d+ (reduce|all_reduce)", self.to_text(), re.M) is not None

    def program(self, rank: int):
        """The handle of a rank's program, made once."""
        rank = rank_number(rank)
        if rank not in self._programs:
            self._programs[rank] = library.Handle(
                "program", "program_create", self.handle, c.c_int32(rank), c.c_int64(0)
            )
        return self._programs[rank]

    def operations(self, rank: int) -> Program:
        """The operations of a rank, for callers that run them by their own means."""
        rank = rank_number(rank)
        if rank not in self._operations:
            self._operations[rank] = Program(self.program(rank))
        return self._operations[rank]

    def shard_shapes(self, rank: int):
        """The shapes of a rank's source and destination, as tuples; None where it has none."""
        rank = rank_number(rank)
        if rank not in self._shapes:
            self._shapes[rank] = tuple(self._shape(rank, buffer) for buffer in (0, 1))
        return self._shapes[rank]

    def _shape(self, rank, buffer):
        found = library.asked(
            "plan_get_buffer",
            library.Buffer(),
            self.handle,
            c.c_int32(rank),
            c.c_int32(buffer),
        )
        # The library gives a scalar one dim.
        return tuple(found.shape[: self._dims]) if found.exists else None

    def bytes_of(self, rank: int) -> Dict[str, int]:
        """The source, destination, peak and received bytes of a rank."""
        found = library.asked(
            "plan_get_rank_bytes", library.RankBytes(), self.handle, c.c_int32(rank_number(rank))
        )
        names = ("source_bytes", "destination_bytes", "peak_bytes", "received_bytes")
        return {name: getattr(found, name) for name in names}

    def simulate(self, data: str = "full") -> Dict[str, Any]:
        """Schema reshard.simulate/1 (tools/json-schemas.md). data: "full" moves and compares every
        byte in this process; "proof" relies on the proof from index sets."""
        if data not in ("full", "proof"):
            raise library.InputError(f"data: expected full or proof, found {shown(data)}")
        return json.loads(self._report("simulation" if data == "full" else "simulation-proof"))

    @property
    def bound(self) -> Dict[str, int]:
        """A lower bound of the time of any plan on the topology, and the bounds that it is the
        greatest of."""
        names = ("bound_ps", "cut_ps", "volume_ps", "latency_ps", "price_ps", "holder_ps")
        return {name: getattr(self._times, name) for name in names}

    def summary(self) -> str:
        """The table that `reshard plan` prints."""
        return self._report("table")

    def explain(self) -> str:
        """The same table with the reasons: what the planner weighed, and why each step is there."""
        return self._report("explanation")

    def to_json(self) -> str:
        """Schema reshard.plan/1 (tools/json-schemas.md)."""
        return self._report("json")

    def to_dict(self) -> Dict[str, Any]:
        return json.loads(self.to_json())

    def to_perfetto(self, path: Optional[str] = None) -> str:
        """The timeline for ui.perfetto.dev, also written to `path` if one is given."""
        return _written(self._report("perfetto"), path)

    def _report(self, form):
        return library.report(self._handle, form)

    def to_html(self, path: Optional[str] = None) -> str:
        """A self-contained page: timeline, traffic, links, sharding, memory, alternatives. Also
        written to `path` if one is given."""
        return _written(self._report("html"), path)

    def _repr_html_(self) -> str:
        import html

        # In a frame, so that the notebook and the page do not style each other.
        page = html.escape(self.to_html(), quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:48rem;border:0"></iframe>'

    def to_text(self) -> str:
        """The plan as text, which `reshard simulate --plan FILE` reads back."""
        return library.written("plan_write", self.handle)

    def __repr__(self) -> str:
        return (
            f"<reshard.Plan {self.request} by {self.planner}: {self.step_count} steps, at most "
            f"{self.received_bytes_max} B received, peak {self.peak_bytes_max} B>"
        )


def _written(text, path):
    if path is not None:
        replace_file(path, text)
    return text


def require_plan(plan):
    if not isinstance(plan, Plan):
        raise library.InputError(f"plan: expected a reshard.Plan, found {shown(plan)}")


@functools.lru_cache(maxsize=1024)
def _planned(asked: _Asked) -> Plan:
    return Plan(asked)


def asked_of(
    shape,
    dtype=None,
    mesh=None,
    source=None,
    target=None,
    *,
    to_mesh=None,
    src_mesh=None,
    src_placements=None,
    dst_mesh=None,
    dst_placements=None,
    topology=None,
    planner="auto",
    memory_limit=0,
) -> _Asked:
    if hasattr(shape, "device_mesh") and hasattr(shape, "placements"):  # a DTensor
        tensor, target = shape, target if dtype is None else dtype
        shape, dtype = tuple(tensor.shape), tensor.dtype
        mesh, source = tensor.device_mesh, tensor.placements
    mesh = src_mesh if mesh is None else mesh
    source = src_placements if source is None else source
    target = dst_placements if target is None else target
    to_mesh = dst_mesh if to_mesh is None else to_mesh
    for value, name in (
        (mesh, "mesh: expected a mesh"),
        (source, "source: expected placements"),
        (target, "target: expected placements"),
    ):
        if value is None:
            raise library.InputError(f"{name}, found None")
    if topology is not None:
        try:
            topology = os.fsdecode(topology)
        except TypeError:
            raise library.InputError(
                f"topology: expected a name or a path, found {shown(topology)}"
            ) from None
    extents = shape_of(shape)
    mesh_text, ranks = mesh_texts(mesh)
    to_mesh_text, to_ranks = (None, None) if to_mesh is None else mesh_texts(to_mesh)
    return _Asked(
        mesh_text,
        ranks,
        to_mesh_text,
        to_ranks,
        ",".join(map(str, extents)),
        dtype_text("f32" if dtype is None else dtype),
        placements_text(source, len(extents)),
        placements_text(target, len(extents)),
        topology,
        text_option("planner", planner),
        whole_number("memory_limit", memory_limit),
        content_digest(topology),
    )


def plan(
    shape,
    dtype=None,
    mesh=None,
    source=None,
    target=None,
    *,
    to_mesh=None,
    src_mesh=None,
    src_placements=None,
    dst_mesh=None,
    dst_placements=None,
    topology: Union[str, "os.PathLike[str]", None] = None,
    planner: str = "auto",
    memory_limit: int = 0,
) -> Plan:
    """Plans and proves a redistribution; equal requests are planned once.

    The request is one of

        plan(shape, dtype, mesh, source, target)
        plan(shape, dtype, src_mesh=, src_placements=, dst_mesh=, dst_placements=)
        plan(dtensor, target)

    shape: that of the whole tensor. dtype: "bf16", torch's or NumPy's. mesh: "2x4", (2, 4), a Mesh
    or torch's DeviceMesh. source, target: "S(0)R", or placements of ours or torch's, one per axis.
    Options: to_mesh, if the target has another mesh; topology, "dgx-h100:2" or a file (default: as
    many DGX H100s as the ranks need); planner; memory_limit in bytes per rank (0: none).

    Raises InputError if the request is wrong or cannot be met.
    """
    return _planned(
        asked_of(
            shape,
            dtype,
            mesh,
            source,
            target,
            to_mesh=to_mesh,
            src_mesh=src_mesh,
            src_placements=src_placements,
            dst_mesh=dst_mesh,
            dst_placements=dst_placements,
            topology=topology,
            planner=planner,
            memory_limit=memory_limit,
        )
    )
