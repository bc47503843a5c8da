# SPDX-License-Identifier: BSD-3-Clause
"""Collectives as PyTorch's dispatcher shows them: their kind, bytes and ranks."""

import functools
import itertools
import math
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.utils._python_dispatch import _disable_current_modes

GATHER, SCATTER, REDUCE, ALL = "all_gather", "reduce_scatter", "all_reduce", "all_to_all"
# With a root, or without bytes.
BROADCAST, TO_ROOT, BARRIER = "broadcast", "reduce", "barrier"
GATHER_TO, SCATTER_FROM = "gather", "scatter"

# Name of the operator, in c10d and in the functional namespaces: its kind, and the argument of
# which the bytes count (traces/README.md defines them).
KINDS = {
    "allreduce_": (REDUCE, "tensors"),
    "allreduce_coalesced_": (REDUCE, "tensors"),
    "allgather_": (GATHER, "input_tensors"),
    "_allgather_base_": (GATHER, "input_tensor"),
    "allgather_coalesced_": (GATHER, "input_list"),
    "allgather_into_tensor_coalesced_": (GATHER, "inputs"),
    "reduce_scatter_": (SCATTER, "output_tensors"),
    "_reduce_scatter_base_": (SCATTER, "output_tensor"),
    "reduce_scatter_tensor_coalesced_": (SCATTER, "outputs"),
    "alltoall_": (ALL, "input_tensors"),
    "alltoall_base_": (ALL, "input"),
    "all_reduce": (REDUCE, "input"),
    "all_reduce_": (REDUCE, "input"),
    "all_reduce_coalesced": (REDUCE, "inputs"),
    "all_reduce_coalesced_": (REDUCE, "inputs"),
    "all_gather_into_tensor": (GATHER, "input"),
    "all_gather_into_tensor_out": (GATHER, "input"),
    "all_gather_into_tensor_coalesced": (GATHER, "inputs"),
    "reduce_scatter_tensor": (SCATTER, "input"),
    "reduce_scatter_tensor_out": (SCATTER, "input"),
    "reduce_scatter_tensor_coalesced": (SCATTER, "inputs"),
    "all_to_all_single": (ALL, "input"),
    "shard_dim_alltoall": (ALL, "input"),
    "broadcast_": (BROADCAST, "tensors"),
    "broadcast": (BROADCAST, "input"),
    "reduce_": (TO_ROOT, "tensors"),
    "gather_": (GATHER_TO, "input_tensors"),
    "scatter_": (SCATTER_FROM, "output_tensors"),
    "barrier": (BARRIER, None),
}
# The argument that is the root's index in the group.
ROOTS = ("root_rank", "src")
NAMESPACES = {"c10d", "_c10d_functional", "_dtensor"}
# Operators of c10d that are not collectives.
OTHERS = {"wait_tensor", "monitored_barrier_", "_wrap_tensor_autograd"}


def kind_of(func):
    """The kind of the collective, or the operator's own name if KINDS lacks it; None for other
    operators."""
    if func.namespace not in NAMESPACES:
        return None
    name = func._schema.name.split("::")[1]
    if name in OTHERS:
        return None
    return KINDS[name][0] if name in KINDS else name.rstrip("_")


def _named(func, args, kwargs):
    out = dict(kwargs)
    for argument, value in zip(func._schema.arguments, args):
        out[argument.name] = value
    return out


def _tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [each for item in value or () for each in _tensors(item)]


def _ranks(named):
    group = named.get("process_group", named.get("group_name"))
    if isinstance(group, str):
        group = dist.distributed_c10d._resolve_process_group(group)
    elif isinstance(group, torch.ScriptObject):
        group = dist.ProcessGroup.unbox(group)
    return dist.get_process_group_ranks(group)


@functools.lru_cache(maxsize=None)
def ranks_of(mesh):
    """The ranks of a mesh, as a tensor that has values whatever modes are on."""
    with _disable_current_modes():
        return mesh.mesh.clone()


class Meshes:
    """Every mesh that the script makes. This process only has its own groups, but the other groups
    along the same axes run the same collective, and a trace covers all ranks."""

    def __init__(self):
        self._meshes = []
        make = DeviceMesh.__init__

        def wrapped(mesh, *args, **kwargs):
            make(mesh, *args, **kwargs)
            self._meshes.append(mesh)

        DeviceMesh.__init__ = wrapped

    def siblings(self, ranks):
        """The largest mesh that has this group along one or more axes, and all its groups along
        them."""
        with _disable_current_modes():
            return self._siblings(ranks)

    def _siblings(self, ranks):
        for mesh in sorted(self._meshes, key=lambda each: -each.size()):
            shape = mesh.shape
            for count in range(1, len(shape) + 1):
                for axes in itertools.combinations(range(len(shape)), count):
                    if math.prod(shape[axis] for axis in axes) != len(ranks):
                        continue
                    others = [axis for axis in range(len(shape)) if axis not in axes]
                    rows = ranks_of(mesh).permute(*others, *axes).reshape(-1, len(ranks)).tolist()
                    if ranks in rows:
                        return mesh, rows
        return None, [ranks]


def bytes_of(tensors):
    return sum(each.numel() * each.element_size() for each in tensors)


def distributes():
    """Whether DTensor is distributing what becomes its shards (distribute_tensor): in a trace,
    tensors exist from the start."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name in ("mesh_scatter", "mesh_broadcast"):
            return True
        frame = frame.f_back
    return False


def root_of(named, kind):
    """The root's index in the group; None for a collective without a root."""
    if kind not in (BROADCAST, TO_ROOT, GATHER_TO, SCATTER_FROM):
        return None
    return next(int(named[each]) for each in ROOTS if each in named)


def measured(func, args, kwargs):
    """Kind, ranks, bytes (None for a barrier) and the root's index in the group (None if it has no
    root), as in a trace line; None if traces do not have the collective."""
    name = func._schema.name.split("::")[1]
    if name not in KINDS:
        return None
    kind, counted = KINDS[name]
    named = _named(func, args, kwargs)
    ranks = list(_ranks(named))
    if kind == BARRIER:
        return kind, ranks, None, None
    # One name in two namespaces: broadcast_ takes a list, broadcast a single tensor.
    tensors = named[counted] if counted in named else named["input"]
    size = bytes_of(_tensors(tensors))
    if kind == ALL and named.get("input_split_sizes"):
        splits = named["input_split_sizes"]
        size = size * max(splits) // max(sum(splits), 1)
    elif kind == ALL or (kind == SCATTER and counted.startswith("input")):
        size //= len(ranks)
    return kind, ranks, size, root_of(named, kind)
