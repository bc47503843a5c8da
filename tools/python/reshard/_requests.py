# SPDX-License-Identifier: BSD-3-Clause
"""What is to be planned, as texts: the request of one tensor or those of a job, and options."""

import ctypes as c
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ._files import content_digest, file_digest
from ._layouts import (
    dtype_text,
    mesh_texts,
    placements_text,
    shape_of,
    shown,
    text_option,
    whole_number,
)
from ._library import Handle, InputError, PlanOptions, RequestTexts, encoded


class Request(NamedTuple):
    """For the command line and the library; None: not given."""

    mesh: str
    ranks: Optional[str]
    to_mesh: Optional[str]
    to_ranks: Optional[str]
    shape: str
    dtype: str
    source: str
    target: str
    name: Optional[str] = None
    place: str = ""  # in a job, for errors: "requests[3]"
    id: Optional[str] = None  # in a job
    after: Tuple[str, ...] = ()


class Options(NamedTuple):
    """Of a plan, whether of one request or of a job. Contents, here and in Asked, are digests, so
    that changed files are noticed."""

    topology: Optional[str]
    planner: str
    memory_limit: int  # bytes; 0: none
    extra_memory: Optional[int]
    free_source: bool
    topology_content: Optional[str]  # if it is a file

    def for_the_library(self) -> PlanOptions:
        return PlanOptions(
            planner=encoded("planner", self.planner),
            memory_limit_bytes=self.memory_limit,
            extra_memory_bytes=self.extra_memory or 0,
            no_extra_memory=int(self.extra_memory == 0),
            free_source=int(self.free_source),
        )


_OPTIONS = Options._fields[:-1]


class Asked(NamedTuple):
    requests: Tuple[Request, ...]
    options: Options
    file: Optional[str] = None  # of the requests, which are then empty
    file_content: Optional[str] = None
    text: Optional[str] = None  # of a file, in place of one

    def words(self) -> List[str]:
        """Of one request, the options of the command line."""
        (request,), options = self.requests, self.options
        given = [
            ("--mesh", request.mesh),
            ("--ranks", request.ranks),
            ("--to-mesh", request.to_mesh),
            ("--to-ranks", request.to_ranks),
            ("--shape", request.shape),
            ("--dtype", request.dtype),
            ("--from", request.source),
            ("--to", request.target),
            ("--topology", options.topology),
            ("--planner", options.planner),
            ("--memory-limit", options.memory_limit or None),
            ("--extra-memory", options.extra_memory),
        ]
        words = [word for name, value in given if value is not None for word in (name, str(value))]
        return words + ["--free-source"] * options.free_source


def asked_of(*request, **given) -> Asked:
    options = {name: given.pop(name) for name in _OPTIONS if name in given}
    return Asked((request_of(*request, **given),), options_of(**options))


def options_of(
    topology=None, planner="auto", memory_limit=0, extra_memory=None, free_source=False
) -> Options:
    if topology is not None:
        try:
            topology = os.fsdecode(topology)
        except TypeError:
            raise InputError(
                f"topology: expected a name or a path, found {shown(topology)}"
            ) from None
    if not isinstance(free_source, bool):
        raise InputError(f"free_source: expected True or False, found {shown(free_source)}")
    return Options(
        topology,
        text_option("planner", planner),
        whole_number("memory_limit", memory_limit),
        None if extra_memory is None else whole_number("extra_memory", extra_memory),
        free_source,
        content_digest(topology),
    )


def request_of(
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
    name=None,
    place="",
) -> Request:
    if hasattr(shape, "device_mesh") and hasattr(shape, "placements"):  # a DTensor
        tensor, target = shape, target if dtype is None else dtype
        shape, dtype = tuple(tensor.shape), tensor.dtype
        mesh, source = tensor.device_mesh, tensor.placements
    mesh = src_mesh if mesh is None else mesh
    source = src_placements if source is None else source
    target = dst_placements if target is None else target
    to_mesh = dst_mesh if to_mesh is None else to_mesh
    for value, what in (
        (mesh, "mesh: expected a mesh"),
        (source, "source: expected placements"),
        (target, "target: expected placements"),
    ):
        if value is None:
            raise InputError(f"{what}, found None")
    extents = shape_of(shape)
    mesh_text, ranks = mesh_texts(mesh)
    to_mesh_text, to_ranks = (None, None) if to_mesh is None else mesh_texts(to_mesh)
    return Request(
        mesh_text,
        ranks,
        to_mesh_text,
        to_ranks,
        ",".join(map(str, extents)),
        dtype_text("f32" if dtype is None else dtype),
        placements_text(source, len(extents)),
        placements_text(target, len(extents)),
        None if name is None else text_option("name", name),
        place,
    )


def request_handle(request: Request) -> Handle:
    names = "mesh ranks to_mesh to_ranks shape dtype source target name id".split()
    try:
        texts = {name: encoded(name, getattr(request, name)) for name in names}
        if request.after:
            count = texts["after_count"] = len(request.after)
            after = (encoded("after", each) for each in request.after)
            texts["after"] = (c.c_char_p * count)(*after)
        return Handle("request", "request_create", c.byref(RequestTexts(**texts)))
    except InputError as error:
        raise (placed(error, request.place) if request.place else error) from None


# ---- jobs

_FIELDS = (
    "shape dtype mesh source target to_mesh src_mesh src_placements dst_mesh dst_placements name "
    "id after"
).split()
_IN_FILES = {"from": "source", "to": "target"}  # names of fields in files of requests


def job_of(requests, options, what="requests") -> Asked:
    """what: the name of the requests in errors."""
    if isinstance(requests, (str, os.PathLike)):
        file = os.fsdecode(requests)
        return Asked((), options, file, file_digest(file))
    if isinstance(requests, Mapping):
        given = [(f"{what}[{shown(name)}]", name, each) for name, each in requests.items()]
    elif isinstance(requests, Iterable) and not isinstance(requests, (bytes, bytearray)):
        given = [(f"{what}[{index}]", None, each) for index, each in enumerate(requests)]
    else:
        raise InputError(
            f"{what}: expected a list of requests, a dict of them by name or a file, found "
            f"{shown(requests)}"
        )
    if not given:
        raise InputError(f"{what}: expected at least one, found none")
    return Asked(tuple(_request_at(*each) for each in given), options)


def _request_at(place, name, request) -> Request:
    try:
        arguments, fields = _arguments_of(request)
        if name is not None:
            if fields.get("name") not in (None, name):
                raise InputError(f"name: expected {shown(name)}, found {shown(fields['name'])}")
            fields["name"] = name
            if name:
                fields.setdefault("id", name)
        own = fields.pop("id", None)
        after = _ids_of(fields.pop("after", None))
        made = request_of(*arguments, **fields, place=place)
        return made._replace(id=None if own is None else _id_of("id", own), after=after)
    except InputError as error:
        raise placed(error, place) from None


def _arguments_of(request) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """Those of request_of, in order and by name."""
    if isinstance(request, (list, tuple)) and 1 <= len(request) <= 5:
        return tuple(request), {}
    if not isinstance(request, Mapping):
        raise InputError(
            "expected a dict of the arguments of reshard.plan, or a tuple of the first five, "
            f"found {shown(request)}"
        )
    fields: Dict[str, Any] = {}
    for key, value in request.items():
        if key in _OPTIONS:
            raise InputError(f"{key}: expected it for the whole job, found it in a request")
        known = _IN_FILES.get(key, key)
        if known not in _FIELDS:
            raise InputError(f"expected fields among {', '.join(_FIELDS)}, found {shown(key)}")
        if known in fields:
            raise InputError(f"expected one of {known} and {key}, found both")
        fields[known] = value
    fields.setdefault("shape", None)  # which is refused
    return (), fields


def _ids_of(after) -> Tuple[str, ...]:
    if after is None:
        return ()
    ids = after if isinstance(after, (list, tuple)) else (after,)
    return tuple(_id_of("after", each) for each in ids)


def _id_of(name, value) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{name}: expected a string or an integer, found {shown(value)}")
    return str(value)


def placed_in_job(error: InputError, requests: Tuple[Request, ...]) -> InputError:
    """The library's error of a job, which numbers the requests, with the places of these. Without
    requests the job is a file's, and its places are right."""
    if not requests:
        return error

    def place(found):
        return requests[int(found[1])].place or found[0]

    return InputError(re.sub(r"(?:^|(?<=\(first in ))requests\[(\d+)\]", place, str(error)))


def placed(error: InputError, place: str) -> InputError:
    """The error of a request, with its place: "requests[3].dtype: expected ..."."""
    text = re.sub("^request: ", "", str(error))
    return InputError(place + ("." if re.match("[a-z][a-z_-]*: ", text) else ": ") + text)
