# SPDX-License-Identifier: BSD-3-Clause
"""Replaces DTensor.redistribute while `redistributing` is entered, only in the thread or asyncio
task that entered it."""

import contextlib
import contextvars
import functools
import threading

from torch.distributed.tensor import DTensor

theirs = DTensor.redistribute
_entered = contextvars.ContextVar("reshard.torch.redistributing", default=())
_lock = threading.Lock()
_open = 0  # number of entered blocks, over all threads


@functools.wraps(theirs)
def _method(self, device_mesh=None, placements=None, **more):
    entries = _entered.get()
    if not entries or placements is None:
        return theirs(self, device_mesh, placements, **more)
    return entries[-1].run(self, device_mesh, placements, **more)


class _Entry:
    def __init__(self, run):
        self.run = run


def _count(change):
    # If someone has replaced the method after us, ours stays underneath and calls the original.
    global _open
    with _lock:
        _open += change
        if _open > 0 and DTensor.redistribute is theirs:
            DTensor.redistribute = _method
        elif _open == 0 and DTensor.redistribute is _method:
            DTensor.redistribute = theirs


@contextlib.contextmanager
def patched(run):
    """Makes `run` DTensor.redistribute while entered. Blocks may be left in any order."""
    entry = _Entry(run)
    _entered.set((*_entered.get(), entry))
    _count(1)
    try:
        yield
    finally:
        _count(-1)
        _entered.set(tuple(each for each in _entered.get() if each is not entry))
