# SPDX-License-Identifier: BSD-3-Clause
"""reshard.torch between ranks of one host: when messages go through shared memory, and what ends a
wait for a rank that never comes. Skipped without torch; the processes import this file."""

import datetime
import os
import signal
import sys
import threading
import time
import unittest

import reshard
from ranks import RANKS, run_ranks
from test_torch import expect, laid, moved, torch

if torch is not None:
    import torch.distributed as dist

START = "import test_rings, sys; test_rings.run_case(*sys.argv[1:])"
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def forth(mesh):
    """Once, and what does it again."""
    from torch.distributed.tensor import Replicate, Shard

    whole = torch.arange(64.0).reshape(8, 8)
    x = laid(whole, mesh, *(Shard(axis) for axis in range(mesh.ndim)))

    def again(x=x):
        y = moved(x, *[Replicate()] * mesh.ndim)
        expect(torch.equal(y.to_local(), whole))

    again()
    again.given = x
    return again


def rings_of(mesh):
    from reshard._torch_channels import route_of

    return route_of((mesh,)).channel.lane("the main thread").rings


@case
def ranks_of_one_host_share_memory(mesh):
    again = forth(mesh)
    expect(rings_of(mesh) is not None, "messages of gloo")
    rings_before = rings_of(mesh)
    again()
    expect(rings_of(mesh) is rings_before, "made twice")


@case
def one_that_cannot_share_is_enough_for_messages(mesh):
    if dist.get_rank() == 2:
        os.environ["RESHARD_SHARED_MEMORY"] = "0"
    again = forth(mesh)
    expect(rings_of(mesh) is None, "shared memory")
    again()


@case
def results_of_many_slots_are_whole(mesh):
    from torch.distributed.tensor import Shard

    # Each message is more than a ring holds.
    whole = torch.arange(3 * 1031 * 1033, dtype=torch.int64).reshape(1031, 3, 1033)
    x = laid(whole, mesh, Shard(0), Shard(2))
    for _ in range(3):
        y = moved(x, Shard(2), Shard(0))
        column, row = mesh.get_coordinate()
        expect(torch.equal(y.to_local(), whole.chunk(2, 2)[column].chunk(2, 0)[row]))
        y = moved(x, Shard(1), Shard(1))


@case
def a_call_that_one_rank_left_out_is_not_met_by_its_next(mesh):
    again = forth(mesh)
    if dist.get_rank() == 3:
        odd = again.given.detach()
        odd._local_tensor = torch.zeros(1)
        expect_ends(lambda: again(odd), reshard.InputError, "expected a local tensor of shape")
    # The others may find out before it leaves, or by its leaving.
    expect_ends(again, reshard.BackendError, "of run" if dist.get_rank() == 3 else "")
    os._exit(0)


@case
def a_rank_that_ended_is_not_waited_for(mesh):
    again = forth(mesh)
    dist.barrier()
    if dist.get_rank() == 3:
        os._exit(0)
    begin = time.monotonic()
    expect_ends(again, reshard.BackendError, "the process of rank 3 ended")
    expect(time.monotonic() - begin < 60, "not at once")
    expect_ends(again, reshard.BackendError, "an earlier one failed")
    os._exit(0)


@case
def a_wait_ends_with_the_time_limit_of_the_groups(mesh):
    again = forth(mesh)
    dist.barrier()
    if dist.get_rank() != 3:
        expect_ends(again, reshard.BackendError, "nothing received from rank 3 in")
    else:
        time.sleep(20)
    os._exit(0)


@case
def a_wait_ends_with_an_interrupt(mesh):
    again = forth(mesh)
    dist.barrier()
    if dist.get_rank() == 0:
        threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        begin = time.monotonic()
        expect_ends(again, KeyboardInterrupt, "")
        expect(time.monotonic() - begin < 10, "not at once")
    else:
        time.sleep(8)
    os._exit(0)


def expect_ends(function, kind, text):
    try:
        function()
    except kind as error:
        expect(text in str(error), str(error))
    else:
        raise AssertionError(f"did not end: {text}")


LIMITS = {"a_wait_ends_with_the_time_limit_of_the_groups": 8}


def run_case(name, rank, port):
    from torch.distributed.tensor import init_device_mesh

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=rank, WORLD_SIZE=str(RANKS))
    torch.set_num_threads(1)
    limit = datetime.timedelta(seconds=LIMITS.get(name, 200))
    dist.init_process_group("gloo", timeout=limit)
    try:
        # The time limit is the default group's, which is that of all ranks in a line.
        CASES[name](init_device_mesh("cpu", (4,) if name in LIMITS else (2, 2)))
    except BaseException as error:  # noqa: BLE001
        print(f"rank {rank}: {type(error).__name__}: {error}", flush=True)
        os._exit(1)
    dist.barrier()
    dist.destroy_process_group()


@unittest.skipIf(torch is None or sys.platform != "linux", "no torch, or no Linux")
class RingsTest(unittest.TestCase):
    def test_cases(self):
        wanted = os.environ.get("RESHARD_TORCH_CASE")
        for name in [wanted] if wanted else CASES:
            with self.subTest(name):
                ended, said = run_ranks(START, name, RESHARD_SHARED_MEMORY="1")
                self.assertEqual(ended, [0] * RANKS, "\n".join(said))
