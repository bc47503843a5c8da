# SPDX-License-Identifier: BSD-3-Clause
"""Meshes, placements, shapes and dtypes as the texts of the command line, from what users have:
texts, numbers, and the objects of torch.distributed, known by what they look like and never
imported."""

from operator import index
from typing import Optional, Sequence, Tuple

from ._library import InputError


class _Value:
    """Equal and shown by what it holds. (dataclasses take as long to import as all the rest.)"""

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
    """An axis cuts `dim` of the tensor, negative from the last."""

    __slots__ = ("dim",)

    def __init__(self, dim: int):
        self.dim = dim


class Replicate(_Value):
    """All ranks along an axis hold the same."""

    __slots__ = ()


class Partial(_Value):
    """Ranks along an axis hold addends: sum, avg, product, min, max, band, bor, bxor."""

    __slots__ = ("reduce_op",)

    def __init__(self, reduce_op: str = "sum"):
        self.reduce_op = reduce_op


class StridedShard(_Value):
    """As torch's _StridedShard: `dim` is cut behind `split_factor` parts of it."""

    __slots__ = ("dim", "split_factor")

    def __init__(self, dim: int, split_factor: int):
        self.dim = dim
        self.split_factor = split_factor


class Mesh(_Value):
    """`shape` by axis; `names` of the axes; `ranks` row-major, default 0, 1, 2 ..."""

    __slots__ = ("shape", "names", "ranks")

    def __init__(
        self,
        shape: Sequence[int],
        names: Optional[Sequence[str]] = None,
        ranks: Optional[Sequence[int]] = None,
    ):
        self.shape: Tuple[int, ...] = tuple(shape)
        self.names = None if names is None else tuple(names)
        self.ranks = None if ranks is None else tuple(ranks)


def placement_text(placement, dims):
    """ "S(0)" of a Shard of ours or torch's; `dims` of the tensor, for negative dims."""
    if isinstance(placement, str):
        return placement
    kind = type(placement).__name__
    if kind == "Replicate":
        return "R"
    if kind == "Partial":
        return f"P({str(placement.reduce_op).lower()})"
    if kind in ("Shard", "StridedShard", "_StridedShard"):
        dim = placement.dim + dims if placement.dim < 0 else placement.dim
        return f"S({dim})" if kind == "Shard" else f"_S({dim},{placement.split_factor})"
    raise InputError(
        f"placement: expected Shard, Replicate, Partial, _StridedShard or text, found {placement!r}"
    )


def placements_text(placements, dims):
    if isinstance(placements, str):
        return placements
    if not isinstance(placements, (list, tuple)):
        placements = [placements]
    return "".join(placement_text(placement, dims) for placement in placements)


def mesh_texts(mesh):
    """(mesh, ranks or None) of a text, a shape, a Mesh or torch's DeviceMesh."""
    if isinstance(mesh, str):
        return mesh, None
    if isinstance(mesh, int):
        return str(mesh), None
    names = getattr(mesh, "names", None) or getattr(mesh, "mesh_dim_names", None)
    ranks = getattr(mesh, "ranks", None)
    if hasattr(mesh, "mesh"):  # torch's: a tensor of ranks
        ranks = [int(rank) for rank in mesh.mesh.flatten().tolist()]
        shape = tuple(mesh.mesh.shape)
    else:
        try:
            shape = mesh.shape if isinstance(mesh, Mesh) else tuple(mesh)
        except TypeError:
            raise InputError(
                f"mesh: expected a text, extents, a Mesh or a DeviceMesh, found {mesh!r}"
            ) from None
    if names:
        text = ",".join(f"{name}={extent}" for name, extent in zip(names, shape))
    else:
        text = "x".join(str(extent) for extent in shape)
    return text, None if ranks is None else ",".join(str(rank) for rank in ranks)


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


def dtype_text(dtype):
    """ "bf16" of a text, torch's dtype or NumPy's."""
    text = str(getattr(dtype, "name", dtype)).rsplit(".", 1)[-1]
    return _TORCH_DTYPES.get(text, text)


def whole_number(name, value) -> int:
    try:
        return index(value)
    except TypeError:
        raise InputError(f"{name}: expected a whole number, found {value!r}") from None


def shape_of(shape) -> Sequence[int]:
    try:
        if isinstance(shape, str):
            return [int(extent) for extent in shape.split(",") if extent]
        return [shape] if isinstance(shape, int) else [index(extent) for extent in shape]
    except (TypeError, ValueError):
        raise InputError(f"shape: expected whole numbers, found {shape!r}") from None
