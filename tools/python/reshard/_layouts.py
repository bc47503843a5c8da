# SPDX-License-Identifier: BSD-3-Clause
"""Meshes, placements, shapes and dtypes as the texts of the command line, from what users have:
texts, numbers, and the objects of torch.distributed, known by what they look like and never
imported."""

from dataclasses import dataclass
from typing import Optional, Sequence, Tuple

from ._library import InputError


@dataclass(frozen=True)
class Shard:
    """An axis cuts `dim` of the tensor, negative from the last."""

    dim: int


@dataclass(frozen=True)
class Replicate:
    """All ranks along an axis hold the same."""


@dataclass(frozen=True)
class Partial:
    """Ranks along an axis hold addends: sum, avg, product, min, max, band, bor, bxor."""

    reduce_op: str = "sum"


@dataclass(frozen=True)
class StridedShard:
    """As torch's _StridedShard: `dim` is cut behind `split_factor` parts of it."""

    dim: int
    split_factor: int


@dataclass(frozen=True)
class Mesh:
    """`shape` by axis; `names` of the axes; `ranks` row-major, default 0, 1, 2 ..."""

    shape: Tuple[int, ...]
    names: Optional[Tuple[str, ...]] = None
    ranks: Optional[Tuple[int, ...]] = None

    def __post_init__(self):
        object.__setattr__(self, "shape", tuple(self.shape))
        for name in ("names", "ranks"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, tuple(getattr(self, name)))


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
        shape = mesh.shape if isinstance(mesh, Mesh) else tuple(mesh)
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


def shape_of(shape) -> Sequence[int]:
    if isinstance(shape, str):
        return [int(extent) for extent in shape.split(",") if extent]
    return [shape] if isinstance(shape, int) else [int(extent) for extent in shape]
