# SPDX-License-Identifier: BSD-3-Clause
"""Where an array's bytes lie: whatever has the buffer protocol (bytearray, array, NumPy) or DLPack
(torch, JAX, CuPy). Nothing is copied and none of these is imported."""

import ctypes as c
from typing import Any, NamedTuple

from ._library import InputError

HOST_DEVICES = (1, 3)  # DLDeviceType of memory that a processor reads: its own, pinned


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


_C_CONTIGUOUS, _WRITABLE = 0x38, 0x1  # PyBUF_*


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


_python = c.pythonapi
_python.PyObject_GetBuffer.argtypes = [c.py_object, c.POINTER(_Py_buffer), c.c_int]
_python.PyBuffer_Release.argtypes = [c.POINTER(_Py_buffer)]
_python.PyBuffer_Release.restype = None
_python.PyCapsule_GetPointer.argtypes = [c.py_object, c.c_char_p]
_python.PyCapsule_GetPointer.restype = c.c_void_p


class Memory(NamedTuple):
    address: int  # 0: none
    size: int  # bytes
    keeps: Any = None  # what must live as long as the address is used


class _Buffer:
    """A buffer that is held until this object goes."""

    def __init__(self, array, flags):
        self.view = _Py_buffer()
        _python.PyObject_GetBuffer(array, c.byref(self.view), flags)

    def __del__(self):
        _python.PyBuffer_Release(c.byref(self.view))


def _of_buffer(array, name, writable):
    try:
        buffer = _Buffer(array, _C_CONTIGUOUS | (_WRITABLE if writable else 0))
    except (BufferError, ValueError) as error:
        what = "contiguous memory that can be written" if writable else "contiguous memory"
        raise InputError(
            f"{name}: expected {what}, found {type(array).__name__}: {error}"
        ) from None
    return Memory(buffer.view.buf or 0, buffer.view.len, buffer)


def _is_dense(tensor):
    expected = 1
    for dim in reversed(range(tensor.ndim)):
        extent = tensor.shape[dim]
        if extent != 1 and tensor.strides[dim] != expected:
            return False
        expected *= extent
    return True


def _of_dlpack(array, name):
    capsule = array.__dlpack__()
    pointer = _python.PyCapsule_GetPointer(capsule, b"dltensor")
    tensor = _DLTensor.from_address(pointer)
    if tensor.device_type not in HOST_DEVICES:
        raise InputError(f"{name}: expected memory of the host, found a device's")
    elements = 1
    for dim in range(tensor.ndim):
        elements *= tensor.shape[dim]
    if elements > 0 and tensor.strides and not _is_dense(tensor):
        raise InputError(f"{name}: expected contiguous memory, found strides")
    size = elements * (tensor.bits * tensor.lanes // 8)
    return Memory((tensor.data or 0) + tensor.byte_offset, size, capsule)


def memory_of(array, name, writable=False) -> Memory:
    """Raises InputError where it is not contiguous, not the host's, or cannot be written."""
    if array is None:
        return Memory(0, 0)
    if hasattr(array, "__dlpack__") and not hasattr(array, "__array_interface__"):
        return _of_dlpack(array, name)
    try:
        memoryview(array)
    except TypeError:
        raise InputError(
            f"{name}: expected None or an array with the buffer protocol or DLPack, found "
            f"{type(array).__name__}"
        ) from None
    return _of_buffer(array, name, writable)


def bytes_at(address, size) -> memoryview:
    """`size` bytes of memory that somebody keeps."""
    return memoryview((c.c_char * size).from_address(address)).cast("B")
