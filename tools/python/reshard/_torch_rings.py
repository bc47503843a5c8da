# SPDX-License-Identifier: BSD-3-Clause
"""Memory shared by the ranks of one host, through which their messages go: an unnamed file, which
the first rank makes and the others open by its descriptor number in that process."""

import ctypes as c
import mmap
import os
import select

from . import _library as library

_HEADER = mmap.PAGESIZE  # holds a number that identifies the memory; then come the rings
_NONCE = 16  # bytes of that number


def _host():
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


class SharedMemory:
    """One mapping of the memory. `offer` makes it, and `taken` maps what another process offers;
    both return None if that is not possible."""

    def __init__(self, file, size):
        self.map = mmap.mmap(file, size)
        self.size = size - _HEADER
        self.address = c.addressof(c.c_char.from_buffer(self.map)) + _HEADER
        self.words, self.file = "-", None  # of an offer

    def end_offer(self):
        os.close(self.file)

    @classmethod
    def offer(cls, size):
        """Other processes find it through its `words` until `end_offer`."""
        if os.environ.get("RESHARD_SHARED_MEMORY") == "0" or not hasattr(os, "memfd_create"):
            return None
        file = None
        try:
            host, file = _host(), os.memfd_create("reshard")
            os.ftruncate(file, _HEADER + size)
            memory = cls(file, _HEADER + size)
        except OSError:
            if file is not None:
                os.close(file)
            return None
        memory.map[:_NONCE] = os.urandom(_NONCE)
        memory.file = file
        memory.words = f"{host} {os.getpid()} {file} {memory.map[:_NONCE].hex()}"
        return memory

    @classmethod
    def taken(cls, words, size):
        if os.environ.get("RESHARD_SHARED_MEMORY") == "0" or words == "-":
            return None
        host, process, number, nonce = words.split()
        try:
            if host != _host():
                return None
            # In another container the same numbers may mean another process and another file.
            name = f"/proc/{process}/fd/{number}"
            if os.stat(name).st_size != _HEADER + size:
                return None
            file = os.open(name, os.O_RDWR)
            try:
                memory = cls(file, _HEADER + size)
            finally:
                os.close(file)
        except (OSError, ValueError):
            return None
        return memory if memory.map[:_NONCE].hex() == nonce else None


def bytes_for(places):
    size = c.c_int64()
    library.call("rings_get_bytes", c.c_int32(places), c.byref(size))
    return size.value


class Rings:
    """This rank's end; `ranks` and `processes` are by place."""

    def __init__(self, memory, place, ranks, processes, timeout):
        self.error = None  # the exception that ended a run
        self._memory = memory
        self._processes = dict(zip(ranks, processes))
        self._ended = set()
        self._limit_ms = 1000 * timeout.total_seconds()
        waits = self._waits()
        next(waits)
        self._waiting = library.Waiting(waits.send)
        options = library.RingsOptions(
            place=place,
            ranks=(c.c_int32 * len(ranks))(*ranks),
            rank_count=len(ranks),
            memory=memory.address,
            memory_bytes=memory.size,
            waiting=self._waiting,
        )
        self._handle = library.Handle("rings", "rings_create", c.byref(options))
        self.pointer = self._handle.pointer

    def _waits(self):
        """The function that the library calls while it waits, as a generator: an exception that a
        signal handler raises appears where Python resumes, which in a generator is inside the
        `try`; in a function it would be before it."""
        answer = 0
        while True:
            try:
                wait = yield answer
                self._require(wait[0].rank, wait[0].waited_ms)
                answer = 0
            except GeneratorExit:
                raise
            except BaseException as error:  # noqa: BLE001  (a C function cannot pass it on)
                self.error = error
                answer = 1

    def _require(self, rank, waited_ms):
        if waited_ms > self._limit_ms:
            raise library.BackendError(
                f"shared memory: nothing received from rank {rank} in {waited_ms / 1000:.0f} s"
            )
        if rank in self._ended:  # and anything that it wrote has been looked for since then
            raise library.BackendError(f"shared memory: the process of rank {rank} ended")
        if _has_ended(self._processes[rank]):
            self._ended.add(rank)


def _has_ended(process):
    """Also true for a process that has ended but that nobody has waited for yet."""
    if not hasattr(os, "pidfd_open"):
        return not os.path.exists(f"/proc/{process}")
    try:
        file = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    try:
        ready = select.poll()
        ready.register(file, select.POLLIN)
        return bool(ready.poll(0))
    finally:
        os.close(file)
