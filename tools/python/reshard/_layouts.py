# SPDX-License-Identifier: BSD-3-Clause
"""Converts meshes, placements, shapes and dtypes to the texts of the command line: from texts,
numbers, and objects of torch.distributed, which are recognised by their attributes; torch is never
imported."""

import re
from operator import index
from typing import Optional, Sequence, Tuple

from ._library import InputError


class _Value:
    """Compared and shown by its fields. (dataclasses take as long to import as everything else.)"""

    __slots__ = ()

    def _held(self):
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other):
        return type(self) is type(other) and self._held() == other._held()

    def __hash__(self):
        return hash((type(self), self._held()))

    def __repr__(self):
        held = (f"{name}={value!r}" for name, value in zip(self.__slots__, self._held()))
        return f"{type(self).__name__}({', '.join(held)})"


class Shard(_Value):
    """A mesh axis shards `dim` of the tensor; a negative dim counts from the last."""

    __slots__ = ("dim",)

    def __init__(self, dim: int):
        self.dim = dim


class Replicate(_Value):
    """All ranks along a mesh axis hold the same."""

    __slots__ = ()


class Partial(_Value):
    """Ranks along a mesh axis hold addends: sum, avg, product, min, max, band, bor, bxor."""

    __slots__ = ("reduce_op",)

    def __init__(self, reduce_op: str = "sum"):
        self.reduce_op = reduce_op


class StridedShard(_Value):
    """Like torch's _StridedShard: `dim` is sharded within each of `split_factor` parts."""

    __slots__ = ("dim", "split_factor")

    def __init__(self, dim: int, split_factor: int):
        self.dim = dim
        self.split_factor = split_factor


class Mesh(_Value):
    """`shape` by axis; `names` of the axes; `ranks` in row-major order, 0, 1, 2 ... by default."""

    __slots__ = ("shape", "names", "ranks")

    def __init__(
        self,
        shape: Sequence[int],
        names: Optional[Sequence[str]] = None,
        ranks: Optional[Sequence[int]] = None,
    ):
        self.shape: Tuple[int, ...] = tuple(shape_of(shape))
        self.names = None if names is None else _sequence("names", names, "axis names")
        self.ranks = None if ranks is None else _sequence("ranks", ranks, "ranks")


def whole_number(name, value, least=0, most=(1 << 63) - 1) -> int:
    """An integer within the library's range; ctypes would silently drop bits of a larger one."""
    if isinstance(value, bool):
        raise InputError(f"{name}: expected a whole number, found {value}")
    try:
        number = index(value)
    except TypeError:
        raise InputError(f"{name}: expected a whole number, found {shown(value)}") from None
    if not least <= number <= most:
        raise InputError(f"{name}: expected a number from {least} to {most}, found {shown(number)}")
    return number


def rank_number(value) -> int:
    return whole_number("rank", value, 0, (1 << 31) - 1)


def shown(value, most=80) -> str:
    """The value as shown in a message, even if its own repr fails."""
    try:
        text = ascii(value)
    except Exception:  # noqa: BLE001  (theirs may raise anything)
        text = f"a {type(value).__name__}"
    return text if len(text) <= most else text[: most - 3] + "..."


def text_option(name, value) -> str:
    if not isinstance(value, str):
        raise InputError(f"{name}: expected a string, found {shown(value)}")
    return value


def placement_text(placement, dims):
    """ "S(0)" for our own Shard or torch's; `dims` of the tensor, to resolve negative dims."""
    if isinstance(placement, str):
        return placement
    kind = type(placement).__name__
    try:
        if kind == "Replicate":
            return "R"
        if kind == "Partial":
            return f"P({_word(str(placement.reduce_op).lower())})"
        if kind == "Shard":
            return f"S({_dim(placement.dim, dims)})"
        if kind in ("StridedShard", "_StridedShard"):
            factor = whole_number("split_factor", placement.split_factor)
            return f"_S({_dim(placement.dim, dims)},{factor})"
    except AttributeError as error:
        raise InputError(f"placement: {error}") from None
    raise InputError(
        "placement: expected Shard, Replicate, Partial, _StridedShard or a string, found "
        f"{shown(placement)}"
    )


def _word(text):
    """The text, if it can only be read as a single word of a placement."""
    if not re.fullmatch(r"\w+", text, re.ASCII):
        raise InputError(f"reduce_op: expected a name such as sum, found {shown(text)}")
    return text


def _dim(dim, dims):
    number = whole_number("dim", dim, -(1 << 31), (1 << 31) - 1)
    # A dim out of range is passed on unchanged, for the library to refuse.
    return number + dims if -dims <= number < 0 else number


def placements_text(placements, dims):
    if isinstance(placements, str):
        return placements
    if not isinstance(placements, (list, tuple)):
        placements = [placements]
    return "".join(placement_text(placement, dims) for placement in placements)


def mesh_texts(mesh):
    """(mesh, ranks or None) from a text, a shape, ranks in nested lists, a Mesh or torch's
    DeviceMesh."""
    if isinstance(mesh, str):
        return mesh, None
    if hasattr(mesh, "mesh"):  # torch's: a tensor of ranks
        ranks = mesh.mesh.flatten().tolist()
        return _axes_text(tuple(mesh.mesh.shape), getattr(mesh, "mesh_dim_names", None), ranks)
    if isinstance(mesh, Mesh):
        return _axes_text(mesh.shape, mesh.names, mesh.ranks)
    if hasattr(mesh, "__index__"):
        mesh = (mesh,)
    extents = _sequence("mesh", mesh, "a string, extents, a Mesh or a DeviceMesh")
    if any(isinstance(extent, (list, tuple)) for extent in extents):
        return _nested_text(extents), None
    return _axes_text(extents, None, None)


def _axes_text(shape, names, ranks):
    shape = [whole_number("mesh", extent) for extent in shape]
    if not names:
        text = "x".join(map(str, shape))
    elif len(names) != len(shape):
        raise InputError(f"mesh: expected {len(shape)} names, one per axis, found {shown(names)}")
    else:
        text = ",".join(f"{_name(name)}={extent}" for name, extent in zip(names, shape))
    return text, None if ranks is None else ",".join(str(rank_number(rank)) for rank in ranks)


def _name(name):
    if not isinstance(name, str) or re.search(r"[,=\s]", name):
        raise InputError(f"mesh: expected an axis name without comma or =, found {shown(name)}")
    return name


def _nested_text(ranks):
    """ "[[0,1],[2,3]]"."""
    if not isinstance(ranks, (list, tuple)):
        return str(rank_number(ranks))
    return "[" + ",".join(map(_nested_text, ranks)) + "]"


def _sequence(name, value, expected):
    """The value as a tuple. Refuses sets, which have no order, and texts: their characters are not
    numbers."""
    if not isinstance(value, (set, frozenset, dict, bytes, bytearray, str)):
        try:
            return tuple(value)
        except TypeError:
            pass
    raise InputError(f"{name}: expected {expected}, found {shown(value)}")


_TORCH_DTYPES = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint8": "u8",
    "bool": "bool",
    "complex64": "c64",
    "complex128": "c128",
}
_TORCH_F8 = {"float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2"}


def torch_name(dtype):
    """Of a dtype as the library names it."""
    for name, text in (*_TORCH_DTYPES.items(), *_TORCH_F8.items()):
        if text == dtype:
            return name
    raise InputError(f"dtype: expected one that torch has, found {shown(dtype)}")


def dtype_text(dtype):
    """ "bf16" from a text, a torch dtype or a NumPy dtype."""
    if getattr(dtype, "byteorder", "=") == ">":
        raise InputError(f"dtype: expected this machine's byte order, found {shown(dtype)}")
    name = getattr(dtype, "name", dtype)
    if isinstance(dtype, type) and dtype.__module__ != "builtins":  # numpy.float32
        name = dtype.__name__
    try:
        text = str(name).rsplit(".", 1)[-1]
    except Exception:  # noqa: BLE001
        text = shown(dtype)
    return _TORCH_DTYPES.get(text, text)


def shape_of(shape) -> Sequence[int]:
    if isinstance(shape, str):
        extents = [extent.strip() for extent in shape.split(",")] if shape.strip() else []
        if not all(re.fullmatch("[0-9]{1,19}", extent) for extent in extents):
            raise InputError(f"shape: expected whole numbers, found {shown(shape)}")
        return [whole_number("shape", int(extent)) for extent in extents]
    if hasattr(shape, "__index__"):
        shape = (shape,)
    return [
        whole_number("shape", extent)
        for extent in _sequence("shape", shape, "whole numbers")
    ]
