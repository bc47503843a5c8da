# SPDX-License-Identifier: BSD-3-Clause
"""Finds, loads and calls libreshard.so through its C interface (tools/capi/reshard.h)."""

import atexit
import ctypes as c
import os
import signal
import sys
import threading
import weakref

MAX_DIMS = 8
FINDINGS, INPUT_ERROR, CHECK_FAILURE, BACKEND_ERROR = 1, 2, 3, 4


class ReshardError(Exception):
    """The base class of all errors of reshard."""


class InputError(ReshardError, ValueError):
    """An argument, text or limit is wrong or cannot be met; the message is one sentence."""


class CheckFailure(ReshardError, RuntimeError):
    """A bug in reshard."""


class BackendError(ReshardError, RuntimeError):
    """The system or the transport failed."""


class Findings(ReshardError):
    """A requested check did not hold; `text` is the report nevertheless."""

    def __init__(self, message, text=""):
        super().__init__(message)
        self.text = text


_ERRORS = {
    FINDINGS: Findings,
    INPUT_ERROR: InputError,
    CHECK_FAILURE: CheckFailure,
    BACKEND_ERROR: BackendError,
}


class _Struct(c.Structure):
    # Each begins with its size, so that the library and its caller may be of different versions.
    def __init__(self, **fields):
        super().__init__(struct_size=c.sizeof(type(self)), **fields)


def struct(name, *fields):
    return type(name, (_Struct,), {"_fields_": [("struct_size", c.c_uint32), *fields]})


def each(kind, names):
    """Fields of one kind."""
    return [(name, kind) for name in names.split()]


RequestTexts = struct(
    "RequestTexts",
    ("reserved", c.c_uint32),
    *each(c.c_char_p, "mesh ranks to_mesh to_ranks shape dtype source target name id"),
    ("after", c.POINTER(c.c_char_p)),
    ("after_count", c.c_int32),
    ("reserved_after", c.c_uint32),
)
PlanOptions = struct(
    "PlanOptions",
    ("reserved", c.c_uint32),
    ("planner", c.c_char_p),
    *each(c.c_int64, "memory_limit_bytes extra_memory_bytes"),
    *each(c.c_int32, "no_extra_memory free_source"),
)
PlanFacts = struct(
    "PlanFacts",
    *each(c.c_int32, "rank_count buffer_count step_count dims element_bytes"),
    *each(c.c_int64, "peak_bytes_max received_bytes_max received_bytes_total padding_bytes_total"),
    *each(c.c_int32, "tensor_count reserved"),
)
Dims = c.c_int64 * MAX_DIMS
Tensor = struct(
    "Tensor",
    ("dims", c.c_int32),
    ("shape", Dims),
    *each(c.c_int32, "element_bytes reserved"),
    *each(c.c_char_p, "dtype name request"),
)
RankBytes = struct(
    "RankBytes",
    ("reserved", c.c_uint32),
    *each(c.c_int64, "source_bytes destination_bytes peak_bytes received_bytes"),
)
Times = struct(
    "Times",
    ("reserved", c.c_uint32),
    *each(c.c_int64, "time_ps bound_ps cut_ps volume_ps latency_ps price_ps holder_ps"),
)
Buffer = struct(
    "Buffer",
    ("exists", c.c_int32),
    *each(c.c_int64, "bytes arena_offset"),
    ("shape", Dims),
    *each(c.c_int32, "tensor element_bytes"),
)
Shards = struct(
    "Shards",
    ("reserved", c.c_uint32),
    ("source", c.c_void_p),
    ("source_bytes", c.c_int64),
    ("destination", c.c_void_p),
    ("destination_bytes", c.c_int64),
)
HeldBuffer = struct(
    "HeldBuffer",
    ("reserved", c.c_uint32),
    ("name", c.c_char_p),
    ("data", c.c_void_p),
    ("bytes", c.c_int64),
)
LentBuffer = struct(
    "LentBuffer",
    ("reserved", c.c_uint32),
    ("name", c.c_char_p),
    ("data", c.c_void_p),
    ("bytes", c.c_int64),
)
ModelTexts = struct(
    "ModelTexts",
    ("reserved", c.c_uint32),
    ("config", c.c_char_p),
    ("config_bytes", c.c_int64),
    *each(c.c_char_p, "config_name from to ranks to_ranks dtype"),
)
StoredBuffer = struct(
    "StoredBuffer",
    ("rank", c.c_int32),
    *each(c.c_char_p, "name dtype"),
    *each(c.c_int32, "dims reserved"),
    ("shape", Dims),
    ("bytes", c.c_int64),
)


class Transfer(c.Structure):
    _fields_ = [*each(c.c_int32, "peer tag"), ("data", c.c_void_p), ("bytes", c.c_int64)]


_Transfers = c.POINTER(Transfer)
Exchange = c.CFUNCTYPE(c.c_int32, c.c_void_p, _Transfers, c.c_int32, _Transfers, c.c_int32)
Run = struct(
    "Run",
    ("reserved", c.c_uint32),
    ("exchange", Exchange),
    ("context", c.c_void_p),
    ("source", c.c_void_p),
    ("source_bytes", c.c_int64),
    ("destination", c.c_void_p),
    ("destination_bytes", c.c_int64),
    ("arena", c.c_void_p),
    ("arena_bytes", c.c_int64),
    ("tensors", c.POINTER(Shards)),
)


class Wait(c.Structure):
    _fields_ = [("context", c.c_void_p), ("waited_ms", c.c_int64), ("rank", c.c_int32)]


Waiting = c.CFUNCTYPE(c.c_int32, c.POINTER(Wait))
RingsOptions = struct(
    "RingsOptions",
    ("place", c.c_int32),
    ("ranks", c.POINTER(c.c_int32)),
    *each(c.c_int32, "rank_count reserved"),
    ("memory", c.c_void_p),
    ("memory_bytes", c.c_int64),
    ("waiting", Waiting),
    ("context", c.c_void_p),
)


def _candidates():
    if os.environ.get("RESHARD_LIBRARY"):
        yield os.environ["RESHARD_LIBRARY"]
        return
    here = os.path.dirname(os.path.realpath(__file__))
    yield os.path.join(here, "libreshard.so.0")
    for build in ("wheel", "release"):  # in a source tree
        yield os.path.join(here, "..", "..", "..", "build", build, "libreshard.so.0")
    yield "libreshard.so.0"


def _load():
    refusals = []
    for name in _candidates():
        try:
            return c.CDLL(name)
        except OSError as error:
            refusals.append(str(error))
    raise ImportError(
        "reshard: libreshard.so.0 was not found: install the wheel, or set RESHARD_LIBRARY to "
        f"that of a build ({'; '.join(refusals)})"
    )


_library = _load()
for _name in ("last_error", "version", "plan_planner", "plan_request"):
    getattr(_library, "reshard_" + _name).restype = c.c_char_p
for _name in "request topology plan program rings rank_buffers text".split():
    getattr(_library, f"reshard_{_name}_free").restype = None
    getattr(_library, f"reshard_{_name}_free").argtypes = [c.c_void_p]
for _name in ("plan_planner", "plan_request"):
    getattr(_library, "reshard_" + _name).argtypes = [c.c_void_p]


def _refuse(code):
    raise _ERRORS.get(code, ReshardError)(last_error())


def last_error():
    return _library.reshard_last_error().decode(errors="replace")


def version():
    return _library.reshard_version().decode()


def call(name, *arguments):
    """Calls reshard_NAME, which returns a code, without holding the interpreter's lock."""
    code = getattr(_library, "reshard_" + name)(*arguments)
    if code != 0:
        _refuse(code)


_abandoned = []  # threads


@atexit.register
def _end_abandoned_calls():
    """Waits for abandoned calls: the library's own data are destroyed when the process exits, so
    nothing may run in it then. If Ctrl-C ended the program, the process ends here by that signal
    instead."""
    for thread in _abandoned:
        try:
            if thread.is_alive() and getattr(sys, "last_type", None) is not KeyboardInterrupt:
                thread.join()
        except KeyboardInterrupt:
            pass
        if thread.is_alive():
            sys.stdout.flush()
            sys.stderr.flush()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)


def long_call(name, *arguments, keeps=None):
    """The same for calls that may take long: Ctrl-C ends the wait at once. Python handles signals
    in the main thread, between its own instructions, so another thread makes the call. If
    abandoned, that thread goes on until the library returns, and keeps alive its arguments and what
    they point to, `keeps`."""
    if threading.current_thread() is not threading.main_thread():
        return call(name, *arguments)
    failures, done = [], threading.Event()

    def run(keeps=keeps):
        try:
            call(name, *arguments)
        except ReshardError as error:
            failures.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=run, daemon=True, name="reshard")
    try:
        thread.start()
    except RuntimeError:  # the interpreter is shutting down
        run()
    try:
        done.wait()
    except BaseException:
        _abandoned.append(thread)
        raise
    if failures:
        raise failures[0]


def encoded(name, text):
    """A string for the library; None stays None. Bytes of a file name that are not UTF-8 are
    preserved."""
    if text is None:
        return None
    if "\0" in text:
        raise InputError(f"{name}: expected a string without NUL, found {ascii(text)[:80]}")
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise InputError(
            f"{name}: expected a string that UTF-8 can encode, found {ascii(text)[:80]}"
        ) from None


def asked(name, result, *arguments):
    """The struct that reshard_NAME fills."""
    call(name, *arguments, c.byref(result))
    return result


def text_of(name, handle):
    return getattr(_library, "reshard_" + name)(handle).decode(errors="replace")


class Handle:
    """A handle of the library, freed with this object."""

    def __init__(self, kind, name, *arguments, keeps=None):
        """keeps: for calls that may take long, the objects that the arguments point to."""
        self.pointer = c.c_void_p()
        if keeps is None:
            call(name, *arguments, c.byref(self.pointer))
        else:
            long_call(name, *arguments, c.byref(self.pointer), keeps=keeps)
        free = getattr(_library, f"reshard_{kind}_free")
        # Not at exit: an abandoned call may still be using it.
        weakref.finalize(self, free, self.pointer.value).atexit = False


def taken(text, size):
    """A text that the library returned, which is freed."""
    out = c.string_at(text, size.value).decode(errors="replace")
    _library.reshard_text_free(text)
    return out


def written(name, handle):
    """The text that reshard_NAME returns."""
    text, size = c.c_void_p(), c.c_int64()
    call(name, handle, c.byref(text), c.byref(size))
    return taken(text, size)


def digest(handle):
    """The text of reshard_plan_get_digest."""
    text = c.create_string_buffer(33)
    call("plan_get_digest", handle, text)
    return text.value.decode()


def report(handle, form, shards):
    """The text of reshard_plan_report; Ctrl-C ends the wait for it. Of few shards, unless their
    bytes are moved, it takes no longer than to start the thread of a long call."""
    text, size = c.c_void_p(), c.c_int64()
    arguments = handle.pointer, form.encode(), c.byref(text), c.byref(size)
    if shards <= 256 and form != "simulation":
        call("plan_report", *arguments)
    else:
        long_call("plan_report", *arguments, keeps=handle)
    return taken(text, size)


def command(arguments):
    """What the command line prints. If a check did not hold, raises Findings with that text."""
    words = [encoded("argument", str(word)) for word in arguments]
    array = (c.c_char_p * max(len(words), 1))(*words)
    text, size = c.c_void_p(), c.c_int64()
    try:
        long_call("command", array, len(words), c.byref(text), c.byref(size))
    except Findings as findings:
        findings.text = taken(text, size) if text.value else ""
        raise
    return taken(text, size)
