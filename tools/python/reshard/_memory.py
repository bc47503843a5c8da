# SPDX-License-Identifier: BSD-3-Clause
"""The memory of an array with the buffer protocol (bytearray, array, NumPy) or DLPack (torch, JAX,
CuPy). Nothing is copied, and none of these packages is imported."""

import ctypes as c
import sys
from typing import Any, NamedTuple, Optional

from ._library import InputError

HOST_DEVICES = (1, 3)  # DLDeviceType of memory that the host can read: its own, and pinned


class _Py_buffer(c.Structure):
    _fields_ = [
        ("buf", c.c_void_p),
        ("obj", c.py_object),
        ("len", c.c_ssize_t),
        ("itemsize", c.c_ssize_t),
        ("readonly", c.c_int),
        ("ndim", c.c_int),
        ("format", c.c_char_p),
        ("shape", c.POINTER(c.c_ssize_t)),
        ("strides", c.POINTER(c.c_ssize_t)),
        ("suboffsets", c.POINTER(c.c_ssize_t)),
        ("internal", c.c_void_p),
    ]


_C_CONTIGUOUS, _FORMAT, _WRITABLE = 0x38, 0x4, 0x1  # PyBUF_*


class _DLTensor(c.Structure):
    _fields_ = [
        ("data", c.c_void_p),
        ("device_type", c.c_int32),
        ("device_id", c.c_int32),
        ("ndim", c.c_int32),
        ("code", c.c_uint8),
        ("bits", c.c_uint8),
        ("lanes", c.c_uint16),
        ("shape", c.POINTER(c.c_int64)),
        ("strides", c.POINTER(c.c_int64)),
        ("byte_offset", c.c_uint64),
    ]


class _Versioned(c.Structure):
    _fields_ = [
        ("version", c.c_uint32 * 2),
        ("manager", c.c_void_p * 2),
        ("flags", c.c_uint64),
        ("tensor", _DLTensor),
    ]


_READ_ONLY = 1  # of flags

# The representations of a dtype: formats of the buffer protocol, and (code, bits) of DLPack. Bytes
# are accepted for any dtype. bf16 has no format, so it is passed as unsigned 16-bit integers.
_FORMATS = {
    "f64": "d",
    "f32": "f",
    "f16": "e",
    "bf16": "H",
    "i64": "ql",
    "i32": "il",
    "i16": "h",
    "i8": "b",
    "u8": "B",
    "bool": "?",
    "c64": ("Zf",),
}
_CODES = {
    "f64": [(2, 64)],
    "f32": [(2, 32)],
    "f16": [(2, 16)],
    "bf16": [(4, 16), (1, 16)],
    "f8e4m3": [(10, 8)],
    "f8e5m2": [(12, 8)],
    "i64": [(0, 64)],
    "i32": [(0, 32)],
    "i16": [(0, 16)],
    "i8": [(0, 8)],
    "u8": [(1, 8)],
    "bool": [(6, 8)],
    "c64": [(5, 64)],
}
_KINDS = {0: "i", 1: "u", 2: "f", 4: "bf", 5: "c", 6: "bool"}

_python = c.pythonapi
_python.PyObject_GetBuffer.argtypes = [c.py_object, c.POINTER(_Py_buffer), c.c_int]
_python.PyBuffer_Release.argtypes = [c.POINTER(_Py_buffer)]
_python.PyBuffer_Release.restype = None
_python.PyCapsule_GetPointer.argtypes = [c.py_object, c.c_char_p]
_python.PyCapsule_GetPointer.restype = c.c_void_p
_python.PyCapsule_IsValid.argtypes = [c.py_object, c.c_char_p]


class Memory(NamedTuple):
    address: int  # 0: none
    size: int  # bytes
    keeps: Any = None  # what must live as long as the address is used


class _Buffer:
    """A buffer, held until this object is deleted."""

    def __init__(self, array, flags):
        self.view = _Py_buffer()
        _python.PyObject_GetBuffer(array, c.byref(self.view), flags)

    def __del__(self):
        _python.PyBuffer_Release(c.byref(self.view))


def _of_buffer(array, name, writable, dtype):
    try:
        # FORMAT is needed: without it the elements of any array would appear as bytes.
        buffer = _Buffer(array, _C_CONTIGUOUS | _FORMAT | (_WRITABLE if writable else 0))
    except (BufferError, ValueError) as error:
        what = "contiguous writable memory" if writable else "contiguous memory"
        raise InputError(
            f"{name}: expected {what}, found {type(array).__name__}: {error}"
        ) from None
    view = buffer.view
    if dtype is not None:
        _require_format(name, (view.format or b"B").decode(errors="replace"), view.itemsize, dtype)
    return Memory(view.buf or 0, view.len, buffer)


def _require_format(name, format, size, dtype):
    plain = format.lstrip("@=<>!")
    if plain in ("B", "c"):
        return
    order = format[0] if format[0] in "<>!" else "="
    foreign = order in ("<" if sys.byteorder == "big" else ">!") and size > 1
    if foreign or plain not in tuple(_FORMATS.get(dtype, "")) or size != _CODES[dtype][0][1] // 8:
        what = " in the other byte order" if foreign else ""
        raise InputError(
            f"{name}: expected {dtype}, like the plan, or bytes; found elements of {size} bytes, "
            f"format '{format}'{what}"
        )


def _is_dense(tensor):
    expected = 1
    for dim in reversed(range(tensor.ndim)):
        extent = tensor.shape[dim]
        if extent != 1 and tensor.strides[dim] != expected:
            return False
        expected *= extent
    return True


def _capsule_of(array, name):
    """A capsule of DLPack 1, which can mark memory as read-only, if the array supports it."""
    try:
        try:
            return array.__dlpack__(max_version=(1, 0))
        except TypeError:
            return array.__dlpack__()
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(f"{name}: expected memory through DLPack, found: {error}") from None


def _of_dlpack(array, name, writable, dtype):
    capsule = _capsule_of(array, name)
    if _python.PyCapsule_IsValid(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(
            _python.PyCapsule_GetPointer(capsule, b"dltensor_versioned")
        )
        if writable and versioned.flags & _READ_ONLY:
            raise InputError(f"{name}: expected writable memory, found read-only")
        tensor = versioned.tensor
    elif _python.PyCapsule_IsValid(capsule, b"dltensor"):
        tensor = _DLTensor.from_address(_python.PyCapsule_GetPointer(capsule, b"dltensor"))
    else:
        raise InputError(f"{name}: expected a DLPack capsule, found {type(capsule).__name__}")
    if tensor.device_type not in HOST_DEVICES:
        raise InputError(f"{name}: expected host memory, found device memory")
    elements = 1
    for dim in range(tensor.ndim):
        elements *= tensor.shape[dim]
    if elements > 0 and tensor.strides and not _is_dense(tensor):
        raise InputError(f"{name}: expected contiguous memory, found strides")
    found = (tensor.code, tensor.bits * tensor.lanes)
    if dtype is not None and found != (1, 8) and found not in _CODES[dtype]:
        kind = _KINDS.get(tensor.code, f"code {tensor.code}, ") + str(found[1])
        raise InputError(f"{name}: expected {dtype}, like the plan, or bytes; found {kind}")
    size = elements * (tensor.bits * tensor.lanes // 8)
    return Memory((tensor.data or 0) + tensor.byte_offset, size, (capsule, array))


def memory_of(array, name, writable=False, dtype: Optional[str] = None) -> Memory:
    """The array's memory. Raises InputError if it is not contiguous, not in host memory, not
    writable although `writable`, or has elements other than `dtype`."""
    if array is None:
        return Memory(0, 0)
    if hasattr(array, "__dlpack__") and not hasattr(array, "__array_interface__"):
        return _of_dlpack(array, name, writable, dtype)
    try:
        memoryview(array).release()
    except (TypeError, ValueError, BufferError) as error:
        raise InputError(
            f"{name}: expected None or an array with the buffer protocol or DLPack, found "
            f"{type(array).__name__}: {error}"
        ) from None
    return _of_buffer(array, name, writable, dtype)


def bytes_at(address, size) -> memoryview:
    """A view of `size` bytes of memory that somebody else keeps alive."""
    return memoryview((c.c_char * size).from_address(address)).cast("B")


_HUGE_PAGE, _MADV_HUGEPAGE = 1 << 21, 14
_madvise = getattr(c.CDLL(None), "madvise", None) if sys.platform == "linux" else None
if _madvise is not None:
    _madvise.argtypes = [c.c_void_p, c.c_size_t, c.c_int]


def ask_for_huge_pages(address, size):
    """For memory about to be written for the first time: getting a page of 4 KiB takes as long as
    filling it. If the request is not granted, the memory is only slower."""
    first = -(-address // _HUGE_PAGE) * _HUGE_PAGE
    last = (address + size) // _HUGE_PAGE * _HUGE_PAGE
    if _madvise is not None and last > first:
        _madvise(first, last - first, _MADV_HUGEPAGE)
