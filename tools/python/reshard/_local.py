# SPDX-License-Identifier: BSD-3-Clause
"""All ranks' shards of a tensor in this process, for tests of redistributions."""

import ctypes as c
import sys

from . import _library as library
from ._buffers import RankBuffers, takes_buffers
from ._layouts import dtype_text, mesh_texts, placements_text, rank_number, shape_of
from ._plan import plan, require_plan
from ._shards import lent, shards_of

_FORMATS = {
    "e": "f16",
    "f": "f32",
    "d": "f64",
    "b": "i8",
    "h": "i16",
    "i": "i32",
    "l": "i64" if c.sizeof(c.c_long) == 8 else "i32",
    "q": "i64",
    "B": "u8",
    "?": "bool",
}
_SIZES = {"f16": 2, "f32": 4, "f64": 8, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u8": 1, "bool": 1}


def _view_of(array):
    try:
        return memoryview(array)
    except TypeError:
        raise library.InputError(
            "array: expected one with the buffer protocol or DLPack, found "
            f"{type(array).__name__}"
        ) from None


def _dtype_of(array):
    if hasattr(array, "dtype"):
        return dtype_text(array.dtype)
    view = _view_of(array)
    found = _FORMATS.get(view.format.lstrip("@=<" if sys.byteorder == "little" else "@=>!"))
    if found is None or view.itemsize != _SIZES[found]:
        raise library.InputError(f"array: expected numbers, found the format '{view.format}'")
    return found


def _shape_of(array):
    return tuple(array.shape if hasattr(array, "shape") else _view_of(array).shape)


def _empty_like(array, shape):
    """An empty array of the same kind as `array`: torch's, NumPy's, or Python's own memory."""
    if hasattr(array, "new_empty"):
        return array.new_empty(shape)
    if hasattr(array, "__array_interface__"):
        return sys.modules["numpy"].empty(shape, array.dtype)
    view = memoryview(array)
    elements = 1
    for extent in shape:
        elements *= extent
    memory = memoryview(bytearray(elements * view.itemsize)).cast("B")
    # A memoryview cannot have an extent of 0.
    return memory.cast(view.format, shape) if elements else memory.cast(view.format)


def execute_all(plan, sources, destinations):
    """Runs all ranks' parts of a plan in this process.

    sources, destinations: one per rank of the plan, ascending; contiguous arrays with the buffer
    protocol or DLPack, or None if a rank has no such shard. Of a plan of many tensors, for each
    rank a list of these, one per tensor, or a dict by name, as in `execute`; of a plan of layouts,
    for each rank a dict of its buffers. The result has the bits of `reshard simulate`.
    """
    require_plan(plan)
    for value, name in ((sources, "sources"), (destinations, "destinations")):
        if not isinstance(value, (list, tuple)):
            raise library.InputError(
                f"{name}: expected a list, one entry per rank, found {type(value).__name__}"
            )
    if len(sources) != len(destinations):
        raise library.InputError(
            f"destinations: expected {len(sources)}, one per rank, found {len(destinations)}"
        )
    in_buffers = takes_buffers(plan, *sources, *destinations)
    all_shards, all_buffers = [], []
    for index, (source, destination) in enumerate(zip(sources, destinations)):
        names = (f"sources[{index}]", f"destinations[{index}]")
        if in_buffers and index < len(plan.ranks):
            buffers = RankBuffers(plan, plan.ranks[index], source, destination, names)
            buffers.gather()
            all_buffers.append(buffers)
            all_shards += buffers.shards
        else:
            all_shards += shards_of(plan, source, destination, names)
    array, count = lent(all_shards), c.c_int64(len(all_shards))
    library.long_call("execute_all", plan.handle, array, count, keeps=(plan, all_shards))
    for buffers in all_buffers:
        buffers.scatter()


class LocalTensor:
    """The shards of a tensor by rank, as a mesh and placements lay it out.

    >>> before = LocalTensor.of(numpy.arange(64.0).reshape(8, 8), (2, 2), "S(0)S(1)")
    >>> after = before.redistribute("S(1)S(0)")
    >>> after.shards[3], after.full(), after.plan.time_ps
    """

    def __init__(self, shards, shape, mesh, placements):
        """shards: arrays by rank, as {rank: array} or in ascending order of the mesh's ranks, each
        of the shape that the placements give its rank. shape: that of the whole tensor."""
        self.shape = tuple(shape_of(shape))
        self.mesh = mesh
        self.placements = placements_text(placements, len(self.shape))
        self.plan = None  # the plan that made the shards
        ranks = _ranks_of(mesh)
        if isinstance(shards, dict):
            given = [rank_number(rank) for rank in shards]
            shards = dict(sorted(zip(given, shards.values())))
        elif isinstance(shards, (list, tuple)):
            given = ranks[: len(shards)] if len(shards) <= len(ranks) else range(len(shards))
            shards = dict(zip(given, shards))
        else:
            raise library.InputError(
                f"shards: expected a dict by rank or a list, found {type(shards).__name__}"
            )
        if list(shards) != ranks:
            raise library.InputError(
                f"shards: expected one for each of the ranks {_listed(ranks)}, found those of "
                f"{_listed(shards)}"
            )
        self.shards = shards
        self._check()

    def _check(self):
        dtype = self.dtype
        laid = plan(self.shape, dtype, self.mesh, self.placements, self.placements, planner="p2p")
        for rank, shard in self.shards.items():
            expected, found = laid.shard_shapes(rank)[0], _shape_of(shard)
            if found != expected and not (0 in expected and 0 in found):
                raise library.InputError(
                    f"shards: rank {rank}: expected the shape {list(expected)}, as "
                    f"{list(self.shape)} in {self.placements} has there, found {list(found)}"
                )
            if _dtype_of(shard) != dtype:
                raise library.InputError(
                    f"shards: rank {rank}: expected {dtype}, like the first, found "
                    f"{_dtype_of(shard)}"
                )

    @classmethod
    def _made(cls, shards, shape, mesh, placements, made):
        """The result of a plan that has been run."""
        self = cls.__new__(cls)
        self.shards, self.shape, self.mesh, self.plan = shards, shape, mesh, made
        self.placements = placements_text(placements, len(shape))
        return self

    @classmethod
    def of(cls, whole, mesh, placements):
        """The shards of `whole`. On an axis with Partial("sum") one rank holds the values, the
        others zeros."""
        shape = _shape_of(whole)
        ranks = _ranks_of(mesh)
        replicated = cls({rank: whole for rank in ranks}, shape, mesh, "R" * _axes_of(mesh))
        return replicated.redistribute(placements)

    @property
    def dtype(self):
        return _dtype_of(next(iter(self.shards.values())))

    def redistribute(self, placements, mesh=None, **options):
        """Returns a new tensor, with the plan that was run as its `plan`. Options are those of
        reshard.plan."""
        to_mesh = self.mesh if mesh is None else mesh
        other = {} if mesh is None else {"to_mesh": mesh}
        made = plan(
            self.shape, self.dtype, self.mesh, self.placements, placements, **other, **options
        )
        like = next(iter(self.shards.values()))
        ranks = made.ranks
        shapes = {rank: made.shard_shapes(rank)[1] for rank in ranks}
        taken = {r: None if shapes[r] is None else _empty_like(like, shapes[r]) for r in ranks}
        execute_all(made, [self.shards.get(rank) for rank in ranks], list(taken.values()))
        shards = {rank: shard for rank, shard in taken.items() if shard is not None}
        return LocalTensor._made(shards, self.shape, to_mesh, placements, made)

    def full(self):
        """The whole tensor, as every rank would have it if replicated."""
        whole = self.redistribute("R" * _axes_of(self.mesh))
        return next(iter(whole.shards.values()))

    def __repr__(self):
        shape = ",".join(map(str, self.shape))
        return f"<reshard.LocalTensor {self.dtype}[{shape}] {self.placements}>"


def _listed(ranks, most=16):
    texts = [str(rank) for rank in ranks]
    return ", ".join(texts[:most]) + (" ..." if len(texts) > most else "")


def _axes_of(mesh):
    text = mesh_texts(mesh)[0].strip()
    if text.startswith("["):  # ranks in nested lists
        bare = text.replace(" ", "")
        return len(bare) - len(bare.lstrip("["))
    return text.count(",") + 1 if "=" in text else text.count("x") + 1


def _ranks_of(mesh):
    """In ascending order."""
    axes = "R" * _axes_of(mesh)
    return plan((1,), "u8", mesh, axes, axes, planner="p2p").ranks
