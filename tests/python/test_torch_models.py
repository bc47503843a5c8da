# SPDX-License-Identifier: BSD-3-Clause
"""reshard.models on gloo processes: drawn models move between torch's tensors, bit for bit. Skipped
without torch; the processes import this file."""

import datetime
import os
import sys
import unittest

try:
    import torch
    import torch.distributed as dist
except ImportError:
    torch = None

from model_cases import DrawnTransfer
from ranks import run_ranks

RANKS = 8
# Fused QKV, experts in more slots than there are experts; KV heads on several ranks each.
SEEDS = (28, 971)


def tensors_of(drawn, side, rank, held):
    dtypes = {"bf16": torch.bfloat16, "f32": torch.float32}
    return {
        each.name: torch.frombuffer(held[each.name], dtype=torch.uint8)
        .view(dtypes[each.dtype]).view(each.shape)
        for each in drawn.transfer.buffers(side, rank)
        if each.bytes
    }  # fmt: skip


def bits_of(tensor):
    return tensor.reshape(-1).view(torch.uint8)


def moved(seed, rank, run):
    """Runs run(drawn, source, destination), and says which buffers are wrong."""
    drawn = DrawnTransfer(seed)
    source = tensors_of(drawn, "from", rank, drawn.source(rank))
    destination = tensors_of(drawn, "to", rank, drawn.destination(rank))
    run(drawn, source, destination)
    expected = tensors_of(drawn, "to", rank, drawn.expected(rank))
    return [
        f"seed {seed}: {name}"
        for name, tensor in destination.items()
        if not torch.equal(bits_of(tensor), bits_of(expected[name]))
    ]


def over_gloo(drawn, source, destination):
    drawn.transfer.execute(dist.get_rank(), source, destination, dist)


def over_a_process_group(drawn, source, destination):
    drawn.transfer.execute(dist.get_rank(), source, destination, dist.group.WORLD)


def as_on_devices(drawn, source, destination):
    """The steps that run on GPUs, on host memory."""
    from reshard import _torch_buffers
    from reshard._torch_transport import TorchTransport

    plan, rank = drawn.transfer.plan, dist.get_rank()
    apart = {name: tensor.clone() for name, tensor in destination.items()}
    device = torch.device("cpu")
    _torch_buffers.run_on(device, plan, rank, source, apart, TorchTransport())
    for name, tensor in apart.items():
        destination[name].copy_(tensor)


def run_rank(_, rank, port):
    os.environ.update(
        MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=rank, WORLD_SIZE=str(RANKS)
    )
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=200))
    wrong = []
    for seed in SEEDS:
        for run in (over_gloo, over_a_process_group, as_on_devices):
            wrong += [f"{run.__name__}: {what}" for what in moved(seed, int(rank), run)]
            dist.barrier()
    dist.destroy_process_group()
    print("\n".join(wrong))
    sys.exit(bool(wrong))


@unittest.skipIf(torch is None, "no torch")
class TorchModelsTest(unittest.TestCase):
    def test_drawn_models_move_between_processes(self):
        start = "import sys, test_torch_models as t; t.run_rank(*sys.argv[1:])"
        ended, said = run_ranks(start, "all", RANKS)
        self.assertEqual(ended, [0] * RANKS, "\n".join(said))
