# SPDX-License-Identifier: BSD-3-Clause
"""Runs a plan of layouts on buffers of a GPU: shards are put together in copies in host memory, and
messages go between shards on the GPU."""

import math

import torch

from . import _library as library
from ._buffers import RankBuffers
from ._layouts import shown, torch_name
from ._memory import bytes_at


def run_on_device(plan, rank, source, destination, carrier):
    """source, destination: dicts of tensors; carrier: as TorchTransport."""
    given, taken = _tensors(source, "source"), _tensors(destination, "destination")
    devices = (each.device for each in (*given.values(), *taken.values()))
    device = next(each for each in devices if each.type != "cpu")
    run_on(device, plan, rank, given, taken, carrier)


def run_on(device, plan, rank, given, taken, carrier):
    before = {name: each.detach().cpu() for name, each in given.items()}
    after = {name: each.detach().cpu() for name, each in taken.items()}
    buffers = RankBuffers(plan, rank, before, after)
    buffers.gather()
    shards = [
        tuple(
            _shard(memory, tensor.dtype, shape, device)
            for memory, shape in zip(memories, plan.shard_shapes(rank, number))
        )
        for number, (memories, tensor) in enumerate(zip(buffers.shards, plan.tensors))
    ]
    carrier.run_on_device(plan, rank, shards)
    for (_, memory), (_, shard) in zip(buffers.shards, shards):
        if memory.size:
            _bytes(memory).copy_(shard.reshape(-1).view(torch.uint8))
    buffers.scatter()
    with torch.no_grad():
        for name, each in taken.items():
            if each.data_ptr() != after[name].data_ptr():
                each.copy_(after[name])


def _tensors(given, name):
    out = {}
    for key, array in (given or {}).items():
        out[key] = array if isinstance(array, torch.Tensor) else torch.from_dlpack(array)
        if not out[key].is_contiguous():
            raise library.InputError(
                f"{name}[{shown(key)}]: expected contiguous memory, found strides"
            )
    return out


def _bytes(memory):
    return torch.frombuffer(bytes_at(memory.address, memory.size), dtype=torch.uint8)


def _shard(memory, dtype, shape, device):
    """A copy on the device; None if the rank has no such shard."""
    if shape is None:
        return None
    of = getattr(torch, torch_name(dtype))
    if math.prod(shape) == 0:
        return torch.empty(shape, dtype=of, device=device)
    return _bytes(memory).to(device, copy=True).view(of).view(shape)
