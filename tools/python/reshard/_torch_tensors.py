# SPDX-License-Identifier: BSD-3-Clause
"""A DTensor's local tensor as memory that a plan can move: complete, resolved, of a dtype that the
library knows, and of the shape that its DTensor has."""

from typing import NamedTuple, Tuple

import torch

# Dtypes that the library does not know, with dtypes of the same size: moved but not reduced.
_STAND_INS = {
    "uint16": torch.int16,
    "uint32": torch.int32,
    "uint64": torch.int64,
    "float8_e8m0fnu": torch.uint8,
    "float8_e4m3fnuz": torch.uint8,
    "float8_e5m2fnuz": torch.uint8,
    "float4_e2m1fn_x2": torch.uint8,
}
# Pairs of numbers, stored with one more dim: moved, summed and averaged like their parts.
_PAIRS = {torch.complex128: torch.float64, torch.complex32: torch.float16}
_KNOWN = (
    "float64 float32 float16 bfloat16 float8_e4m3fn float8_e5m2 int64 int32 int16 int8 uint8 bool "
    "complex64"
).split()

MAX_DIMS = 8


class Stored(NamedTuple):
    """How elements of a dtype are stored for planning and moving."""

    dtype: torch.dtype
    pairs: bool  # a last dim of 2 was added
    only_moves: bool  # because the stand-in's arithmetic is not the dtype's

    def shape(self, shape) -> Tuple[int, ...]:
        return (*shape, 2) if self.pairs else tuple(shape)

    def of(self, tensor):
        if self.pairs:
            return torch.view_as_real(tensor)
        return tensor if tensor.dtype == self.dtype else tensor.view(self.dtype)

    def back(self, tensor, dtype):
        if self.pairs:
            return torch.view_as_complex(tensor)
        return tensor if tensor.dtype == dtype else tensor.view(dtype)


def stored(dtype, dims):
    """None if the library cannot represent the dtype."""
    if dtype in _PAIRS:
        return Stored(_PAIRS[dtype], True, False) if dims < MAX_DIMS else None
    name = str(dtype).rsplit(".", 1)[-1]
    if name in _KNOWN:
        return Stored(dtype, False, False)
    return Stored(_STAND_INS[name], False, True) if name in _STAND_INS else None


def by_bits(dtype):
    """As integers of the same size, which can be moved but not reduced."""
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return Stored(bits[dtype.itemsize], False, True)


def settled(local):
    """The tensor without pending work: waits for a collective, and applies a pending conjugate or
    negation."""
    if type(local) is not torch.Tensor and hasattr(local, "elem"):  # an AsyncCollectiveTensor
        local = local.wait()
    if local.is_complex():
        local = local.resolve_conj()
    return local.resolve_neg()


def misfit(local, expected, dtype, what="dtensor"):
    """Why the plan cannot run on it, or None."""
    if local.shape != expected:
        return (
            f"{what}: expected a local tensor of shape {list(expected)}, given its shape, mesh "
            f"and placements, found {list(local.shape)}"
        )
    if local.dtype != dtype:
        return f"{what}: expected a local tensor of its dtype {dtype}, found {local.dtype}"
    if local.layout != torch.strided:
        return f"{what}: expected a dense local tensor, found one with the layout {local.layout}"
    return None

