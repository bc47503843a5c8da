# SPDX-License-Identifier: BSD-3-Clause
"""A trace while it is being recorded: its meshes, lines and names. Does not depend on PyTorch.

Lines are kept until the end: the limit of an index is known only when a later line uses it.
"""

import json
import os
import tempfile

# The outputs of these operators hold the integers of their first input, to which limits are passed
# on.
SAME_VALUES = {"detach", "alias", "view", "_unsafe_view", "t", "transpose.int", "permute", "clone"}
SAME_VALUES |= {"unsqueeze", "squeeze.dim", "squeeze", "expand", "slice.Tensor", "select.int"}
SAME_VALUES |= {"_to_copy", "view_copy", "split.Tensor", "cat"}


def mesh_text(shape, axes):
    """A mesh as `--mesh` takes it: "dp=2,tp=4", or "2x4" if axes have no names."""
    if axes and all(axes):
        return ",".join(f"{axis}={size}" for axis, size in zip(axes, shape))
    return "x".join(map(str, shape))


def flat(names):
    """Names, None, and lists of both, flattened into one list."""
    out = []
    for name in names:
        out.extend(name if isinstance(name, list) else [name])
    return out


def without_trailing(values):
    """Values without the trailing None."""
    values = list(values)
    while values and values[-1] is None:
        values.pop()
    return values


class Document:
    def __init__(self, topology=None):
        self._topology = topology
        self.recorded = None  # header fields that say what it was recorded on
        self._meshes = {}  # (shape, axes, ranks): name
        self._lines = []
        self._used = set()  # names of tensors
        self._made = {}  # letter: the number of names made with it
        self._tensors = {}  # name: its `tensor` line
        self._source = {}  # name: the tensor that holds the same integers
        self.left_out = {}  # what has no line: how often it occurred

    def __len__(self):
        return len(self._lines)

    def mesh(self, shape, axes, ranks):
        """The name of the mesh in the header."""
        key = (tuple(shape), tuple(axes or ()), tuple(ranks))
        if key not in self._meshes:
            base = "_".join(axes) if axes and all(axes) else "mesh"
            known = set(self._meshes.values())
            name, count = base, 1
            while name in known:
                count += 1
                name = f"{base}.{count}"
            self._meshes[key] = name
        return self._meshes[key]

    def fresh(self, letter):
        """A new name: letter and number."""
        self._made[letter] = self._made.get(letter, 0) + 1
        return self.name(f"{letter}{self._made[letter]}")

    def name(self, wanted):
        """`wanted`, followed by a number if a tensor already has that name."""
        name, count = wanted, 1
        while name in self._used:
            count += 1
            name = f"{wanted}.{count}"
        self._used.add(name)
        return name

    def tensor(self, name, **fields):
        line = {"op": "tensor", "tensor": name, **fields}
        self._tensors[name] = line
        self._lines.append(line)

    def limit(self, name, below):
        """Notes that the integers of `name` index a dim of length `below`."""
        while name in self._source:
            name = self._source[name]
        line = self._tensors.get(name)
        if line is None or below < 1 or line["dtype"] not in ("i64", "i32", "i16", "i8", "u8"):
            return
        if line.pop("guessed", False) or "below" not in line:
            line["below"] = below
        line["below"] = min(line["below"], below)

    def call(self, line):
        inputs = [name for name in flat(line["in"]) if name]
        if line["call"] in SAME_VALUES and inputs:
            for out in line["out"]:
                if out and out not in inputs:
                    self._source[out] = inputs[0]
        self._lines.append(line)

    def add(self, line):
        self._lines.append(line)

    def leave_out(self, what):
        self.left_out[what] = self.left_out.get(what, 0) + 1

    def header(self):
        meshes = {}
        for (shape, axes, ranks), name in self._meshes.items():
            text = mesh_text(shape, axes)
            plain = list(ranks) == list(range(len(ranks)))
            meshes[name] = text if plain else {"mesh": text, "ranks": list(ranks)}
        header = {"reshard_trace": 1}
        if self._topology:
            header["topology"] = self._topology
        if self.recorded:
            header["recorded"] = self.recorded
        return {**header, "meshes": meshes}

    def lines(self):
        yield self.header()
        for line in self._lines:
            yield {key: value for key, value in line.items() if key != "guessed"}

    def text(self):
        # Without spaces after commas and colons it would be a tenth shorter, but unreadable.
        return "".join(json.dumps(line, allow_nan=False) + "\n" for line in self.lines())


def write_whole(path, text):
    """Writes a temporary file and renames it: a run that dies leaves the old file."""
    folder = os.path.dirname(os.path.abspath(path))
    handle, beside = tempfile.mkstemp(dir=folder, prefix=".record_torch.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(beside, 0o666 & ~umask)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
