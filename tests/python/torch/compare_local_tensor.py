#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares reshard.LocalTensor with PyTorch's own LocalTensor: a DTensor of 16 ranks in one
process.

    PYTHONPATH=tools/python python3 tests/python/torch/compare_local_tensor.py

Both redistribute the same 64 MiB in turn, on one thread each; values are compared, medians printed.
Needs a PyTorch that has LocalTensorMode; exits with 1 if a value differs, or with --check if a
target is missed.
"""

import argparse
import statistics
import sys
import time
import warnings

try:
    import torch
    import torch.distributed as dist
    from torch.distributed._local_tensor import LocalTensorMode
    from torch.distributed.tensor import (
        DTensor,
        Partial,
        Shard,
        distribute_tensor,
        init_device_mesh,
    )
    from torch.testing._internal.distributed.fake_pg import FakeStore
    import reshard
except ImportError as error:
    missing = error
else:
    missing = None

SHAPE = (4096, 4096)  # f32, 64 MiB


def cases():
    """Mesh, source, target, and how many times as fast it shall be."""
    yield (16,), [Shard(0)], [Shard(1)], 5
    yield (4, 4), [Shard(0), Shard(1)], [Shard(1), Shard(0)], 20
    yield (16,), [Partial()], [Shard(0)], 3


def theirs_of(mesh, whole, source):
    if source[0].is_partial():
        return DTensor.from_local(whole.clone(), mesh, source, run_check=False)
    return distribute_tensor(whole, mesh, source)


def timed(run):
    begin = time.perf_counter()
    result = run()
    return time.perf_counter() - begin, result


def compare(shape, source, target, least, repeats):
    mesh = init_device_mesh("cpu", shape)
    # Small integers, so that sums are exact in any order.
    whole = (torch.arange(SHAPE[0] * SHAPE[1]) % 61).to(torch.float32).reshape(SHAPE)
    theirs = theirs_of(mesh, whole, source)
    held = theirs.to_local()._local_tensors
    shards = {rank: tensor.contiguous() for rank, tensor in held.items()}
    ours = reshard.LocalTensor(shards, SHAPE, shape, source)
    times = ([], [])
    for _ in range(repeats + 1):
        took, after = timed(lambda: ours.redistribute(target))
        times[0].append(took)
        took, expected = timed(lambda: theirs.redistribute(placements=target))
        times[1].append(took)
    expected = expected.to_local()._local_tensors
    right = all(torch.equal(after.shards[rank], expected[rank]) for rank in expected)
    mine, other = (statistics.median(each[1:]) for each in times)
    text = "".join(map(str, source)) + " -> " + "".join(map(str, target))
    print(
        f"{text:22} PyTorch {1e3 * other:8.1f} ms, reshard {1e3 * mine:8.1f} ms, "
        f"{other / mine:6.1f} x (asked {least} x){'' if right else ', WRONG'}"
    )
    return right, other / mine >= least


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--check", action="store_true", help="end with 1 where it is slower")
    arguments = parser.parse_args()
    if missing:
        parser.error(f"needs torch and the package reshard: {missing}")
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    dist.init_process_group("fake", rank=0, world_size=16, store=FakeStore())
    with LocalTensorMode(16):
        found = [compare(*case, arguments.repeats) for case in cases()]
    dist.destroy_process_group()
    if not all(right for right, _ in found) or (
        arguments.check and not all(fast for _, fast in found)
    ):
        sys.exit(1)


if __name__ == "__main__":
    main()
