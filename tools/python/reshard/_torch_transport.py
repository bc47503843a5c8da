# SPDX-License-Identifier: BSD-3-Clause
"""Messages over a process group of torch.distributed: host memory over gloo or MPI, tensors on GPUs
over NCCL."""

import torch
import torch.distributed as dist

from ._execute import run_on_host
from ._torch_steps import run_steps


class TorchTransport:
    """Peers are global ranks, as in torch's meshes. Collectives on GPUs use the one of `groups`
    that has exactly their ranks."""

    def __init__(self, group=None, groups=()):
        self._group = group
        self._groups = [dist.group.WORLD if group is None else group, *groups]

    def run(self, plan, rank, shards):
        run_on_host(plan, rank, shards, self.exchange)

    def exchange(self, sends, receives):
        works = [
            dist.irecv(_bytes(each.memory), each.peer, group=self._group, tag=each.tag)
            for each in receives
        ]
        works += [
            dist.isend(_bytes(each.memory), each.peer, group=self._group, tag=each.tag)
            for each in sends
        ]
        for work in works:
            work.wait()

    def run_on_device(self, plan, rank, arrays):
        """arrays: source and destination by tensor, None if the rank has none."""
        run_steps(plan, rank, [tuple(map(_tensor, pair)) for pair in arrays], self._group,
                  self._groups)  # fmt: skip


def _tensor(array):
    return array if array is None or isinstance(array, torch.Tensor) else torch.from_dlpack(array)


def _bytes(memory):
    return torch.frombuffer(memory, dtype=torch.uint8)
