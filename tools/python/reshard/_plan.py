# SPDX-License-Identifier: BSD-3-Clause
"""Plans: made once per request, cached, and queried."""

import ctypes as c
import functools
import json
import os
import re
from collections.abc import Mapping
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple, Union

from . import _library as library
from ._buffers import StoredBuffer, stored_buffers
from ._files import replace_file
from ._layouts import rank_number, shown, whole_number
from ._operations import Program
from ._requests import Asked, asked_of, job_of, options_of, placed_in_job, request_handle


class PlannedTensor(NamedTuple):
    """A tensor of a plan, as requested."""

    name: str  # "": none
    shape: Tuple[int, ...]
    dtype: str  # "bf16"
    request: str  # "bf16[8192,8192] S(0)R on 2x4 -> RS(1)"


class Plan:
    """A proved plan, of one tensor or of many. Sizes are in bytes, times in picoseconds."""

    def __init__(self, asked: Asked):
        self._topology = None
        if asked.options.topology is not None:
            name = library.encoded("topology", asked.options.topology)
            self._topology = library.Handle("topology", "topology_create", name, keeps=())
        self._handle = self._planned(asked)
        self._facts = library.asked("plan_get_facts", library.PlanFacts(), self.handle)
        self.tensor_count: int = self._facts.tensor_count
        self._shapes: Dict[Any, Any] = {}
        self._operations: Dict[int, Program] = {}
        self._programs: Dict[int, library.Handle] = {}

    def _planned(self, asked):
        topology = self._topology.pointer if self._topology else None
        last = (topology, c.byref(asked.options.for_the_library()))
        if asked.text is not None:
            text = asked.text.encode()
            name, first, keeps = "plan_create_job_from_text", (text, c.c_int64(len(text))), (text,)
        elif asked.file is not None:
            file = library.encoded("requests", asked.file)
            name, first, keeps = "plan_create_job_from_file", (file,), ()
        elif len(asked.requests) == 1:
            request = request_handle(asked.requests[0])
            name, first, keeps = "plan_create", (request.pointer,), (request,)
        else:
            keeps = [request_handle(request) for request in asked.requests]
            pointers = (c.c_void_p * len(keeps))(*(each.pointer for each in keeps))
            name, first = "plan_create_job", (pointers, c.c_int32(len(keeps)))
        try:
            return library.Handle("plan", name, *first, *last, keeps=(keeps, self._topology))
        except library.InputError as error:
            raise placed_in_job(error, asked.requests) from None

    @property
    def planner(self) -> str:
        """The planner that made the steps; for "auto", the one that it chose."""
        return library.text_of("plan_planner", self.handle)

    @property
    def request(self) -> str:
        """ "bf16[8192,8192] S(0)R on 2x4 -> RS(1)"."""
        return library.text_of("plan_request", self.handle)

    @functools.cached_property
    def tensors(self) -> Tuple[PlannedTensor, ...]:
        """In the order of the requests. On a rank, tensor t, counted from 0, has the buffers 2 * t,
        the source, and 2 * t + 1, the destination."""
        return tuple(map(self._tensor, range(self.tensor_count)))

    def _tensor(self, number):
        found = library.asked(
            "plan_get_tensor", library.Tensor(), self.handle, c.c_int32(number)
        )
        name, dtype, request = (each.decode() for each in (found.name, found.dtype, found.request))
        return PlannedTensor(name, tuple(found.shape[: found.dims]), dtype, request)

    @functools.cached_property
    def _numbers(self):
        """The tensors of each name."""
        numbers: Dict[str, List[int]] = {}
        for number, tensor in enumerate(self.tensors):
            if tensor.name:
                numbers.setdefault(tensor.name, []).append(number)
        return numbers

    def tensor_number(self, tensor: Union[int, str, None] = None) -> int:
        """The number of a tensor by its number or name; None: the only one."""
        count = self.tensor_count
        if tensor is None and count == 1:
            return 0
        if isinstance(tensor, str):
            found = self._numbers.get(tensor, ())
            if len(found) == 1:
                return found[0]
            raise library.InputError(
                f"tensor: expected the name of one of {count}, found {shown(tensor)}, which "
                f"{len(found) or 'none'} of them have"
            )
        if tensor is None:
            raise library.InputError(
                f"tensor: expected a number or a name, as the plan has {count}, found None"
            )
        return whole_number("tensor", tensor, 0, count - 1)

    @functools.cached_property
    def dtype(self) -> str:
        """ "bf16", of all tensors; raises InputError if they differ."""
        dtypes = dict.fromkeys(tensor.dtype for tensor in self.tensors)
        if len(dtypes) > 1:
            raise library.InputError(
                f"dtype: the plan's tensors are of {' and '.join(dtypes)}; ask for tensors"
            )
        return next(iter(dtypes))

    @functools.cached_property
    def fingerprint(self) -> int:
        """A number below 2^32, by which ranks recognise that they have the same plan."""
        return int(library.digest(self.handle)[:8], 16)

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

    @property
    def extra_bytes_max(self) -> int:
        """What the rank with most holds at one time beyond source and destination, messages that
        are packed included: what `extra_memory` limits."""
        return self.to_dict()["extra_bytes_max"]

    @property
    def needed_bytes_max(self) -> int:
        """All that the fullest rank holds at one time: what `memory_limit` limits."""
        return self.to_dict()["needed_bytes_max"]

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
        if not any("P(" in tensor.request for tensor in self.tensors):
            return False
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

    def shard_shapes(self, rank: int, tensor: Union[int, str, None] = None):
        """The shapes of a rank's source and destination, as tuples; None where it has none.
        tensor: the number or name of one of many."""
        rank = rank_number(rank)
        if (rank, tensor) not in self._shapes:
            number = self.tensor_number(tensor)
            self._shapes[rank, tensor] = tuple(
                self._shape(rank, number, buffer) for buffer in (2 * number, 2 * number + 1)
            )
        return self._shapes[rank, tensor]

    def _shape(self, rank, number, buffer):
        found = library.asked(
            "plan_get_buffer",
            library.Buffer(),
            self.handle,
            c.c_int32(rank),
            c.c_int32(buffer),
        )
        # In the library all tensors of a plan have the same number of dims, at least one.
        dims = self._facts.dims
        first = dims - len(self.tensors[number].shape)
        return tuple(found.shape[first:dims]) if found.exists else None

    @functools.cached_property
    def has_buffers(self) -> bool:
        """Whether the plan is one of layouts, between the buffers that a model's ranks have."""
        return bool(self.buffers("to"))

    def buffers(self, side: str) -> List[StoredBuffer]:
        """Of a plan of layouts, the buffers of all ranks before ("from") or after it ("to")."""
        return stored_buffers(self, side)

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
        return library.report(self._handle, form, self.tensor_count * self._facts.rank_count)

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
def planned(asked: Asked) -> Plan:
    return Plan(asked)


@functools.lru_cache(maxsize=16)  # they are large
def planned_job(asked: Asked) -> Plan:
    return Plan(asked)


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
    extra_memory: Optional[int] = None,
    free_source: bool = False,
) -> Plan:
    """Plans and proves a redistribution; equal requests are planned once.

    The request is one of

        plan(shape, dtype, mesh, source, target)
        plan(shape, dtype, src_mesh=, src_placements=, dst_mesh=, dst_placements=)
        plan(dtensor, target)

    shape: that of the whole tensor. dtype: "bf16", torch's or NumPy's. mesh: "2x4", (2, 4), a Mesh
    or torch's DeviceMesh. source, target: "S(0)R", or placements of ours or torch's, one per axis.
    Options: to_mesh, if the target has another mesh; topology, "dgx-h100:2" or a file (default: as
    many DGX H100s as the ranks need); planner; memory_limit in bytes per rank (0: none);
    extra_memory, the same beyond source and destination (None: no limit); free_source, if a source
    counts only until nothing reads it any more, for callers who run `operations` and free it then.

    Raises InputError if the request is wrong or cannot be met, of a limit with one that works.
    """
    return planned(asked_of(**locals()))


def plan_job(
    requests: Union[str, "os.PathLike[str]", Iterable[Any], Mapping], **options: Any
) -> Plan:
    """Plans and proves many redistributions as one, as those of a model's tensors: everything that
    goes from one rank to another is one message, and loads are balanced over all tensors. Equal
    jobs are planned once.

    requests: a list of the arguments of `plan`, each a dict by name or a tuple of the first five;
    or a dict of these by the tensors' names. A dict can also have "name", and "from" and "to" for
    source and target, as files of requests have, and their "id" and "after", ids of requests that
    it comes after; names of a dict are ids. Or the path of such a file (docs/commands.md,
    `--requests`).

        plan_job([{"name": "wq", "shape": (4096, 4096), "dtype": "bf16", "mesh": (8,),
                   "source": "S(0)", "target": "S(1)"}, ...])

    Options are those of `plan`; without `topology` that of the file is taken, if it names one. Of
    the plan, `tensors` lists the tensors, `shard_shapes(rank, tensor)` takes one's number or name,
    and `execute` and `execute_all` take a list of arrays or a dict by name for each rank.

    Raises InputError if a request is wrong ("requests[3].dtype: ...") or the job cannot be met.
    """
    return planned_job(job_of(requests, options_of(**options)))
