# SPDX-License-Identifier: BSD-3-Clause
"""Tensors as nested lists of element numbers, and what frameworks do to them. -1 is padding."""


def tensor(first, shape):
    """The elements first, first + 1, ... in row-major order."""
    if not shape:
        return first
    step = 1
    for extent in shape[1:]:
        step *= extent
    return [tensor(first + i * step, shape[1:]) for i in range(shape[0])]


def flat(x):
    """Row-major."""
    if not isinstance(x, list):
        return [x]
    out = []
    for each in x:
        out += flat(each)
    return out


def cut(x, n, r):
    """The r-th of n equal pieces."""
    assert len(x) % n == 0, f"{len(x)} rows do not divide by {n}"
    c = len(x) // n
    return x[r * c : (r + 1) * c]


def chunk(x, n, r):
    """As torch.chunk; later ones may be empty."""
    c = -(-len(x) // n)
    return x[r * c : (r + 1) * c]


def columns(x, way, n, r):
    """cut or chunk of the last dim."""
    if x and isinstance(x[0], list):
        return [columns(each, way, n, r) for each in x]
    return way(x, n, r)


def transposed(x):
    return [list(column) for column in zip(*x)]


def interleaved(a, b):
    return [row for pair in zip(a, b) for row in pair]


def padding_like(x):
    return [padding_like(each) for each in x] if isinstance(x, list) else -1


def padded(x, multiple):
    """Rows added up to a multiple."""
    return x + [padding_like(x[0]) for _ in range(-len(x) % multiple)] if x else x


def padded_columns(x, multiple):
    return [row + [-1] * (-len(row) % multiple) for row in x]


def shares(total, n):
    """How many of `total` things each of n chunks has."""
    return [len(chunk(list(range(total)), n, r)) for r in range(n)]
