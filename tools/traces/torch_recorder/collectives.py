# SPDX-License-Identifier: BSD-3-Clause
"""Collectives as PyTorch's dispatcher shows them: what kind, how many bytes, which ranks."""

import itertools
import weakref

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

GATHER, SCATTER, REDUCE, ALL = "all_gather", "reduce_scatter", "all_reduce", "all_to_all"

# Name of the operator, in c10d and in the functional namespaces: kind, and the argument whose bytes
# count (traces/README.md says which those are).
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
}
NAMESPACES = {"c10d", "_c10d_functional", "_dtensor"}
# Of c10d: no collectives.
OTHERS = {"wait_tensor", "barrier", "monitored_barrier_", "_wrap_tensor_autograd"}


def kind_of(func):
    """The kind of collective, the operator's own name where we have no line for it, else None."""
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


class Meshes:
    """Every mesh the script makes: this process knows only its own groups, and a group's siblings
    along the axis run the same collective."""

    def __init__(self):
        self._meshes = weakref.WeakSet()
        make = DeviceMesh.__init__

        def wrapped(mesh, *args, **kwargs):
            make(mesh, *args, **kwargs)
            self._meshes.add(mesh)

        DeviceMesh.__init__ = wrapped

    def siblings(self, ranks):
        """All groups that do what this one does, itself among them."""
        everyone = sorted((mesh.mesh for mesh in self._meshes), key=lambda mesh: -mesh.numel())
        for mesh in everyone:
            for count in range(1, mesh.ndim + 1):
                for axes in itertools.combinations(range(mesh.ndim), count):
                    others = [axis for axis in range(mesh.ndim) if axis not in axes]
                    size = len(ranks)
                    groups = mesh.permute(*others, *axes).reshape(-1, mesh.numel()).tolist()[0]
                    rows = [groups[at : at + size] for at in range(0, len(groups), size)]
                    if mesh.numel() % size == 0 and ranks in rows:
                        wanted = 1
                        for axis in axes:
                            wanted *= mesh.shape[axis]
                        if wanted == size:
                            return rows
        return [ranks]


def lines(func, args, kwargs, meshes):
    """What the trace says of the collective: one line a group. None: it cannot be said."""
    name = func._schema.name.split("::")[1]
    if name not in KINDS:
        return None
    kind, counted = KINDS[name]
    named = _named(func, args, kwargs)
    ranks = list(_ranks(named))
    size_bytes = sum(each.numel() * each.element_size() for each in _tensors(named[counted]))
    if kind == ALL or (kind == SCATTER and counted.startswith("input")):
        size_bytes //= max(len(ranks), 1)
    if kind == ALL and named.get("input_split_sizes"):
        whole = sum(named["input_split_sizes"]) or 1
        each = _tensors(named[counted])[0]
        size_bytes = each.numel() * each.element_size() * max(named["input_split_sizes"]) // whole
    return [
        {"op": "collective", "kind": kind, "ranks": group, "bytes": size_bytes}
        for group in meshes.siblings(ranks)
    ]
