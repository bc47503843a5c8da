# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch decides for drawn calls of view operators and of stack."""

import math
import random
from unittest.mock import patch

import torch
import torch.distributed.tensor._dispatch as dispatch
from calls import operator_of
from placements import R, S, SS, by, device_mesh, local_shape, spec, strided, text
from torch.distributed.tensor import DTensor, Partial
from torch.distributed.tensor.placement_types import Shard, _StridedShard

MESHES = [(2,), (3,), (4,), (2, 2), (2, 2), (2, 3), (3, 2), (4, 2), (2, 4), (1, 4), (2, 2, 2)]
REFUSALS = ("Cannot flatten unevenly", "Cannot unflatten", "Cannot shard unevenly",
            "This operation would remove or reshape")
NAMES = """view view view view view_copy view_copy _unsafe_view reshape flatten.using_ints ravel
    unflatten.int squeeze squeeze.dim squeeze.dims squeeze_.dim unsqueeze permute transpose.int
    swapdims movedim.int expand expand expand_copy broadcast_to repeat repeat tile atleast_1d
    atleast_2d atleast_3d mT numpy_T t""".split()


class Draw(random.Random):
    def placement(self, dims):
        way, dim = self.randrange(20), self.randrange(max(dims, 1))
        if way < 4 or dims == 0:
            return R
        if way < 14:
            return S(dim)
        if way < 18:
            return SS(dim, self.choice([1, 2, 2, 3, 4, 4, 6, 8]))
        return Partial(self.choice(["sum", "avg", "max"]))

    def factors(self, n, count):
        out, prime = [1] * count, 2
        while n > 1:
            while n % prime == 0:
                out[self.randrange(count)] *= prime
                n //= prime
            prime += 1
        return out

    def sizes(self, shape):
        way, out = self.randrange(4), list(shape)
        if way == 0 or not shape:
            return self.factors(math.prod(shape), self.randint(1, 4))
        for _ in range(self.randint(1, 2) if way != 1 else 0):
            at = self.randrange(len(out))
            out[at : at + 1] = self.factors(out[at], 2)
        for _ in range(self.randint(1, 2) if way != 2 else 0):
            at = self.randrange(len(out))
            out[at : at + 2] = [math.prod(out[at : at + 2])]
        if self.randrange(8) == 0:
            out[self.randrange(len(out))] = -1
        return out

    def dim(self, dims):
        return self.randrange(-dims, dims)

    def attributes(self, name, shape):
        """The operator's non-tensor arguments, in its order; None where it does not fit the
        shape."""
        dims, base = len(shape), name.split(".")[0]
        if base in ("view", "view_copy", "_unsafe_view"):
            return {"size": self.sizes(shape)}
        if base == "reshape":
            return {"shape": self.sizes(shape)}
        if base == "unsqueeze":
            return {"dim": self.dim(dims + 1)}
        if base in ("ravel", "atleast_1d", "atleast_2d", "atleast_3d", "numpy_T"):
            return {}
        if name == "squeeze" or (base == "mT" and dims >= 2) or (base == "t" and dims <= 2):
            return {}
        return self.attributes_of_dims(name, base, shape) if dims else None

    def attributes_of_dims(self, name, base, shape):
        dims = len(shape)
        if base == "flatten":
            first = self.randrange(dims)
            return {"start_dim": first, "end_dim": self.randrange(first, dims)}
        if base == "unflatten":
            dim = self.randrange(dims)
            return {"dim": dim, "sizes": self.factors(shape[dim], self.randint(1, 3))}
        if base == "permute":
            return {"dims": self.sample(range(dims), dims)}
        if name == "squeeze.dims":
            return {"dim": sorted(self.sample(range(dims), self.randint(1, dims)))}
        names = {"squeeze": ["dim"], "squeeze_": ["dim"], "transpose": ["dim0", "dim1"],
                 "swapdims": ["dim0", "dim1"], "movedim": ["source", "destination"]}
        if base in names:
            return {argument: self.dim(dims) for argument in names[base]}
        front = [3] * self.randrange(2)
        if base in ("expand", "expand_copy", "broadcast_to"):
            return {"size": front + [self.choice([1, 4, -1] if n == 1 else [-1, n, n])
                                     for n in shape]}
        if base in ("repeat", "tile"):
            repeats = front + self.choices([1, 1, 2], k=dims)
            return {"repeats" if base == "repeat" else "dims": repeats}
        return None


def compact(value):
    return str(value).replace(" ", "")


def marked(side):
    by_view = strided(side.placements) and not side.use_strided_shard_as_shard_order
    return compact(text(side.placements)) + (":v" if by_view else "")


def tensor(draw, mesh, shape, placements):
    """A tensor as rank 0 has it; in half of the draws a view has made its _StridedShards."""
    side = spec(device_mesh(mesh), shape, placements, by_view=draw.randrange(2) == 0)
    return DTensor(torch.zeros(local_shape(side)), side, requires_grad=False)


def decided(call, inputs):
    """The placements that `call` wants its inputs to have, and the spec of its result. Nothing is
    moved, because PyTorch cannot make some of the moves that its rule asks for."""
    sides, wanted = [t._spec for t in inputs], {}  # before the call, which may be in place

    def moved(_, current, target, **__):
        wanted[id(current)] = target.placements
        return torch.zeros(local_shape(target))

    with patch.object(dispatch, "redistribute_local_tensor", moved):
        result = call()
    return [wanted.get(id(side), side.placements) for side in sides], result._spec


def answer(call, inputs):
    try:
        chosen, side = decided(call, inputs)
    except Exception as error:  # whatever fails inside PyTorch is an answer, too
        sentence = str(error).split(". ")[0].split("\n")[0]
        return f"!{sentence}" if sentence.startswith(REFUSALS) else "?"
    assert all(c == chosen[0] for c in chosen)
    return f"{compact(text(chosen[0]))} {marked(side)}"


def is_short(shape, placements, sizes):
    """Whether PyTorch gathers a dim because it is too short, whatever the operator does."""
    least = [1] * len(shape)
    for p, n in zip(placements, sizes):
        if isinstance(p, (Shard, _StridedShard)):
            least[p.dim] *= n * getattr(p, "split_factor", 1)
    return any(length < n for length, n in zip(shape, least))


def views(count=1200):
    """OPERATOR MESH SHAPE ATTRIBUTES PLACEMENTS : WANTED OUTPUT, what the operator chose for its
    input and its output, ":v" behind placements whose _StridedShard a view made; ": !SENTENCE"
    where it refuses, ": ?" where it fails inside or its local operator does. Each call is a real
    one on rank 0.
    """
    draw, lines = Draw(13), []
    while len(lines) < count:
        shape = [draw.choice([1, 1, 2, 3, 4, 4, 5, 6, 8, 8, 12, 16])
                 for _ in range(draw.choice([0, 1, 1, 2, 2, 2, 3, 3, 4]))]
        mesh, name = draw.choice(MESHES), draw.choice(NAMES)
        placements = [draw.placement(len(shape)) for _ in mesh]
        attributes = draw.attributes(name, shape)
        if attributes is None or (name == "t" and is_short(shape, placements, mesh)):
            continue
        x = tensor(draw, mesh, shape, placements)
        words = ";".join(f"{k}={compact(v)}" for k, v in attributes.items()) or "-"
        head = f"{name} {by('x', mesh)} {by(',', shape) or '-'} {words} {marked(x._spec)}"
        found = answer(lambda: operator_of(name)(x, *attributes.values()), [x])
        # This call becomes view; what dispatch sees as reshape has a rule of its own.
        if name != "reshape":
            lines.append(f"{head} : {found}")
    return lines


def stacks(count=300):
    """MESH SHAPE DIM PLACEMENTS;PLACEMENTS;... : WANTED OUTPUT, what stack chose for all inputs
    and for its output.
    """
    draw, lines = Draw(14), []
    for _ in range(count):
        mesh = draw.choice(MESHES)
        shape = [draw.choice([1, 2, 3, 4, 8]) for _ in range(draw.randint(1, 3))]
        dim = draw.randrange(-len(shape) - 1, len(shape) + 1)
        lists = [[draw.placement(len(shape)) for _ in mesh] for _ in range(draw.randint(1, 4))]
        if draw.randrange(3) == 0:
            lists = [lists[0] if draw.randrange(2) else one for one in lists]
        inputs = [tensor(draw, mesh, shape, one) for one in lists]
        found = answer(lambda: torch.ops.aten.stack(inputs, dim), inputs)
        names = ";".join(marked(x._spec) for x in inputs)
        lines.append(f"{by('x', mesh)} {by(',', shape)} {dim} {names} : {found}")
    return lines
