# SPDX-License-Identifier: BSD-3-Clause
"""Decides which threads of different ranks belong together when a rank redistributes in several
threads at once."""

import concurrent.futures.thread
import itertools
import re
import threading
import weakref

from ._library import InputError

lock = threading.Lock()


class _Started:
    """Threads that Python names by a counter of the process, such as "Thread-7 (work)". Ranks that
    also start other threads count differently; what they have in common is a thread's place among
    threads of the same function."""

    def __init__(self):
        self._places = weakref.WeakKeyDictionary()
        self._seen = {}

    def place(self, thread, kind, number):
        with lock:
            if thread not in self._places:
                seen = self._seen.setdefault(kind, set())
                for other in threading.enumerate():
                    found = _counted(other)
                    if found and found[0] == kind:
                        seen.add(found[1])
                seen.add(number)
                self._places[thread] = sum(other < number for other in seen)
            return self._places[thread]


_started = _Started()


def _counted(thread):
    """("(work)", 7) of "Thread-7 (work)"."""
    found = re.fullmatch(r"Thread-(\d+)(.*)", thread.name)
    return found and (found[2].strip(), int(found[1]))


def lane_of_thread():
    """A name that is the same on all ranks for threads that do the same, as far as can be known.
    Workers of a pool take whatever comes next, so a pool is a single lane."""
    if threading.get_ident() == threading.main_thread().ident:
        return "the main thread"
    thread = threading.current_thread()
    if type(thread).__name__ == "_DummyThread":
        return "threads that Python did not start"
    if type(thread).__name__ == "DummyProcess":
        return "a ThreadPool"
    if getattr(thread, "_target", None) is concurrent.futures.thread._worker:
        name = re.sub(r"_\d+$", "", thread.name)
        return "pool " + re.sub(r"^ThreadPoolExecutor-\d+$", "ThreadPoolExecutor", name)
    if found := _counted(thread):
        kind, number = found
        return f"thread {_started.place(thread, kind, number)} {kind}".strip()
    return f"thread '{thread.name}'"


def backward_lane(forward):
    """The lane for the backward pass of what ran in the lane `forward`. A thread started by Python
    runs backward passes in its own order; autograd's own threads take whatever is ready, from any
    thread, so there the forward lane's name must do."""
    thread = threading.current_thread()
    if type(thread).__name__ == "_DummyThread":
        return forward + ", backward"
    here = lane_of_thread()
    return forward + ", backward" + ("" if forward.startswith(here) else f" in {here}")


class Lane:
    """Calls of one thread on one mesh, one after another. Two calls at once cannot be kept apart:
    both are refused, and all later ones too, as ranks may have begun to count differently."""

    def __init__(self, name, number=None):
        self.name = name
        self.number = number  # None until the ranks have met in it
        self.rings = None  # if the ranks share memory
        self.meeting = threading.Lock()
        self.known = set()  # fingerprints of plans on which the ranks have agreed
        self._count = itertools.count()
        self._busy = False
        self._mixed = False

    def enter(self):
        """Starts a call and returns its number."""
        with lock:
            self._mixed = self._mixed or self._busy
            if self._mixed:
                raise self._refusal()
            self._busy = True
        return next(self._count)

    def leave(self):
        self._busy = False

    def require_alone(self):
        """Called after a call, the result of which may belong to another one."""
        if self._mixed:
            raise self._refusal()

    def _refusal(self):
        return InputError(
            f"lane: two calls of {self.name} on one mesh at once, which cannot be matched across "
            "ranks; give each its own mesh or a lane= that is equal on all ranks"
        )
