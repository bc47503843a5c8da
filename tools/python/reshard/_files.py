# SPDX-License-Identifier: BSD-3-Clause
"""Reads files to detect changes, and writes files all or nothing."""

import os
import stat
import zlib
from typing import Optional


def content_digest(topology: Optional[str]) -> Optional[str]:
    """A digest of the file that a topology's name refers to, alone or followed by ":COUNT" or
    ",nics=2"; None for a preset, and for names that are no file, which the library refuses."""
    if topology is None:
        return None
    plain = topology.partition(",")[0]
    for path in (topology, topology.rpartition(":")[0], plain, plain.rpartition(":")[0]):
        found = file_digest(path)
        if found is not None:
            return found
    return None


def file_digest(path: str) -> Optional[str]:
    """None if it is not a regular file that can be read."""
    try:
        if path and stat.S_ISREG(os.stat(path).st_mode):
            with open(path, "rb") as file:
                content = file.read()
            return f"{len(content)} {zlib.crc32(content):08x} {zlib.adler32(content):08x}"
    except (OSError, ValueError):
        pass
    return None


def replace_file(path, text):
    """Writes a temporary file and renames it, so that a full disk or a signal leaves the old file
    unchanged. An existing file keeps its mode, and its owner if that is allowed; links are
    followed; anything that is not a regular file, such as a pipe, is written directly."""
    content = text.encode("utf-8", "surrogateescape")
    try:
        old = os.stat(path)
    except FileNotFoundError:
        old = None
    if old is not None and not stat.S_ISREG(old.st_mode):
        with open(path, "wb") as file:
            file.write(content)
        return
    path = os.fsdecode(os.path.realpath(path))
    beside = os.path.join(os.path.dirname(path), f".{os.urandom(8).hex()}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(beside, flags, 0o666 if old is None else 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            if old is not None:
                _inherit(file.fileno(), old)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def _inherit(file, old):
    try:
        os.fchown(file, old.st_uid, old.st_gid)
    except OSError:
        pass  # not ours to give away
    os.fchmod(file, stat.S_IMODE(old.st_mode))
