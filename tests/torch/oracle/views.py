# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch decides for drawn calls of view operators and of stack."""

import math
import random

import torch
import torch.distributed.tensor._dispatch as dispatch
from torch.distributed.tensor import DTensor, Partial
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
from torch.distributed.tensor.placement_types import Shard, _StridedShard
from placements import R, S, SS, by, device_mesh, text

VIEWS = """
OPERATOR MESH SHAPE ATTRIBUTES PLACEMENTS : WANTED OUTPUT, what the operator chose for its input
and its output, ":v" behind placements whose _StridedShard a view made; ": !SENTENCE" where it
refuses, ": ?" where it fails inside or its local operator does. Each call is a real one on rank 0.
"""

STACKS = """
MESH SHAPE DIM PLACEMENTS;PLACEMENTS;... : WANTED OUTPUT, what stack chose for all inputs and for
its output.
"""

MESHES = [(2,), (3,), (4,), (2, 2), (2, 2), (2, 3), (3, 2), (4, 2), (2, 4), (1, 4), (2, 2, 2)]
REFUSALS = (
    "Cannot flatten unevenly",
    "Cannot unflatten",
    "Cannot shard unevenly",
    "This operation would remove or reshape",
)


class Draw:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def placement(self, dims):
        way, dim = self.random.randrange(20), self.random.randrange(max(dims, 1))
        if way < 4 or dims == 0:
            return R
        if way < 14:
            return S(dim)
        if way < 18:
            return SS(dim, self.random.choice([1, 2, 2, 3, 4, 4, 6, 8]))
        return Partial(self.random.choice(["sum", "avg", "max"]))

    def factors(self, n, count):
        out, prime = [1] * count, 2
        while n > 1:
            while n % prime == 0:
                out[self.random.randrange(count)] *= prime
                n //= prime
            prime += 1
        return out

    def sizes(self, shape):
        way, out = self.random.randrange(4), list(shape)
        if way == 0 or not shape:
            return self.factors(math.prod(shape), self.random.randint(1, 4))
        for _ in range(self.random.randint(1, 2) if way != 1 else 0):
            at = self.random.randrange(len(out))
            out[at : at + 1] = self.factors(out[at], 2)
        for _ in range(self.random.randint(1, 2) if way != 2 else 0):
            at = self.random.randrange(len(out))
            out[at : at + 2] = [math.prod(out[at : at + 2])]
        if self.random.randrange(8) == 0:
            out[self.random.randrange(len(out))] = -1
        return out

    def dim(self, dims):
        return self.random.randrange(-dims, dims)

    # The operator's non-tensor arguments, in its order; None where it does not fit the shape.
    def attributes(self, name, shape):
        dims = len(shape)
        base = name.split(".")[0]
        if base in ("view", "view_copy", "_unsafe_view"):
            return {"size": self.sizes(shape)}
        if base == "reshape":
            return {"shape": self.sizes(shape)}
        if base in ("ravel", "atleast_1d", "atleast_2d", "atleast_3d") or name == "squeeze":
            return {}
        if base == "numpy_T" or (base == "mT" and dims >= 2) or (base == "t" and dims <= 2):
            return {}
        if base == "unsqueeze":
            return {"dim": self.dim(dims + 1)}
        if dims == 0:
            return None
        if base == "flatten":
            first = self.random.randrange(dims)
            return {"start_dim": first, "end_dim": self.random.randrange(first, dims)}
        if base == "unflatten":
            dim = self.random.randrange(dims)
            return {"dim": dim, "sizes": self.factors(shape[dim], self.random.randint(1, 3))}
        if name in ("squeeze.dim", "squeeze_.dim"):
            return {"dim": self.dim(dims)}
        if name == "squeeze.dims":
            return {"dim": sorted(self.random.sample(range(dims), self.random.randint(1, dims)))}
        if base == "permute":
            return {"dims": self.random.sample(range(dims), dims)}
        if base in ("transpose", "swapdims"):
            return {"dim0": self.dim(dims), "dim1": self.dim(dims)}
        if base == "movedim":
            return {"source": self.dim(dims), "destination": self.dim(dims)}
        front = [3] * self.random.randrange(2)
        if base in ("expand", "expand_copy", "broadcast_to"):
            grown = [self.random.choice([1, 4, -1] if n == 1 else [-1, n, n]) for n in shape]
            return {"size": front + grown}
        if base in ("repeat", "tile"):
            return {
                "repeats" if base == "repeat" else "dims": front
                + self.random.choices([1, 1, 2], k=dims)
            }
        return None


NAMES = """view view view view view_copy view_copy _unsafe_view reshape flatten.using_ints ravel
    unflatten.int squeeze squeeze.dim squeeze.dims squeeze_.dim unsqueeze permute transpose.int
    swapdims movedim.int expand expand expand_copy broadcast_to repeat repeat tile atleast_1d
    atleast_2d atleast_3d mT numpy_T t""".split()


def strided(placements):
    return any(isinstance(p, _StridedShard) for p in placements)


def marked(spec):
    by_view = strided(spec.placements) and not spec.use_strided_shard_as_shard_order
    return text(spec.placements).replace(" ", "") + (":v" if by_view else "")


# A tensor as rank 0 has it. `by_view`: as if a view had made its _StridedShard.
def tensor(mesh, shape, placements, by_view):
    strides = torch.empty(shape, device="meta").stride()
    spec = DTensorSpec(
        mesh,
        tuple(placements),
        tensor_meta=TensorMeta(torch.Size(shape), strides, torch.float32),
        use_strided_shard_as_shard_order=strided(placements) and not by_view,
    )
    return DTensor(torch.zeros(local_shape(spec)), spec, requires_grad=False)


def local_shape(spec):
    return compute_local_shape_and_global_offset(
        spec.shape, spec.mesh, spec.placements, skip_offset=True
    )[0]


# The placements that `call` wants its inputs to have, and its result's spec. Nothing is moved: that
# PyTorch cannot make some of these moves is no matter of the rule.
def decided(call, inputs):
    wanted = {}

    def moved(_, current, target, **__):
        wanted[id(current)] = target.placements
        return torch.zeros(local_shape(target))

    before = dispatch.redistribute_local_tensor
    dispatch.redistribute_local_tensor = moved
    specs = [t._spec for t in inputs]
    try:
        result = call()
    finally:
        dispatch.redistribute_local_tensor = before
    chosen = [wanted.get(id(spec), spec.placements) for spec in specs]
    return chosen, result._spec


def answer(call, inputs):
    try:
        chosen, spec = decided(call, inputs)
    except Exception as error:  # whatever fails inside PyTorch is an answer, too
        sentence = str(error).split(". ")[0].split("\n")[0]
        return f"!{sentence}" if sentence.startswith(REFUSALS) else "?"
    assert all(c == chosen[0] for c in chosen)
    return f"{text(chosen[0]).replace(' ', '')} {marked(spec)}"


def overload(name):
    base, _, rest = name.partition(".")
    return getattr(getattr(torch.ops.aten, base), rest or "default")


# Operators with rows gather what is too short: no matter of the map.
def is_short(shape, placements, sizes):
    least = [1] * len(shape)
    for p, n in zip(placements, sizes):
        if isinstance(p, (Shard, _StridedShard)):
            least[p.dim] *= n * getattr(p, "split_factor", 1)
    return any(length < n for length, n in zip(shape, least))


def compact(value):
    return str(value).replace(" ", "")


def views(count=1200):
    draw, meshes, lines = Draw(13), {m: device_mesh(m) for m in MESHES}, []
    while len(lines) < count:
        pick = draw.random.choice
        shape = [
            pick([1, 1, 2, 3, 4, 4, 5, 6, 8, 8, 12, 16])
            for _ in range(pick([0, 1, 1, 2, 2, 2, 3, 3, 4]))
        ]
        sizes, name = pick(MESHES), pick(NAMES)
        placements = [draw.placement(len(shape)) for _ in sizes]
        attributes = draw.attributes(name, shape)
        if attributes is None or (name == "t" and is_short(shape, placements, sizes)):
            continue
        x = tensor(meshes[sizes], shape, placements, by_view=draw.random.randrange(2) == 0)
        head = [
            name,
            by("x", sizes),
            by(",", shape) or "-",
            ";".join(f"{k}={compact(v)}" for k, v in attributes.items()) or "-",
            marked(x._spec),
        ]
        found = answer(lambda: overload(name)(x, *attributes.values()), [x])
        # Called so it becomes view; what dispatch sees as reshape has a rule of its own.
        if name != "reshape":
            lines.append(f"{' '.join(head)} : {found}")
    return lines


def stacks(count=300):
    draw, meshes, lines = Draw(14), {m: device_mesh(m) for m in MESHES}, []
    for _ in range(count):
        sizes = draw.random.choice(MESHES)
        shape = [draw.random.choice([1, 2, 3, 4, 8]) for _ in range(draw.random.randint(1, 3))]
        dim = draw.random.randrange(-len(shape) - 1, len(shape) + 1)
        lists = [
            [draw.placement(len(shape)) for _ in sizes] for _ in range(draw.random.randint(1, 4))
        ]
        if draw.random.randrange(3) == 0:
            lists = [lists[0] if draw.random.randrange(2) else one for one in lists]
        inputs = [tensor(meshes[sizes], shape, one, draw.random.randrange(2) == 0) for one in lists]
        found = answer(lambda: torch.ops.aten.stack(inputs, dim), inputs)
        names = ";".join(marked(x._spec) for x in inputs)
        lines.append(f"{by('x', sizes)} {by(',', shape)} {dim} {names} : {found}")
    return lines
