#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares reshard.torch.redistribute with DTensor.redistribute, on gloo processes on this machine.

    PYTHONPATH=tools/python python3 tests/python/torch/compare_dtensor.py --mesh 2x2 --time

Every pair of placements is moved by both, forward and backward, and compared with the definition of
DTensor, computed from the whole tensor. With --time both only run in turn, and the medians are
printed; --null shows the effect of noise alone. Needs PyTorch; exits with 1 if one of our values is
wrong.
"""

import argparse
import collections
import itertools
import math
import os
import statistics
import sys
import time
import warnings

try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as multiprocessing
    from torch.distributed.tensor import (
        DeviceMesh,
        DTensor,
        Partial,
        Replicate,
        Shard,
        init_device_mesh,
    )
    from torch.distributed.tensor.debug import CommDebugMode
    from reshard import _execute
    from reshard.torch import plan_of, redistribute, redistributing
except ImportError as error:
    missing = error
else:
    missing = None


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mesh", default="2x2", help="a process per rank: 2, 4, 2x2, 4x2 ...")
    parser.add_argument("--shape", default="8,6,5", help="of the whole tensor")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--partial", action="store_true", help="P(sum) among the sources")
    parser.add_argument("--flatten", action="store_true", help="DTensor may merge over two axes")
    parser.add_argument("--steps", action="store_true", help="run as tensors on devices are")
    parser.add_argument("--time", action="store_true", help="time both, in turn")
    parser.add_argument("--null", action="store_true", help="with --time: DTensor on both sides")
    parser.add_argument("--repeats", type=int, default=3, help="timed runs of each pair")
    parser.add_argument("--every", type=int, default=1, help="only each so-manieth pair")
    parser.add_argument("--planner", default="auto")
    parser.add_argument("--pair", help="only this one: S(0)R,RS(1)")
    arguments = parser.parse_args()
    if missing:
        parser.error(f"needs torch and the package reshard: {missing}")
    return arguments


def local_of(whole, mesh, placements):
    """What a rank holds, by DTensor's definition: each axis in turn chunks what is left."""
    for axis, placement in enumerate(placements):
        if isinstance(placement, Shard):
            place, size = mesh.get_local_rank(axis), mesh.size(axis)
            each = -(-whole.shape[placement.dim] // size)
            begin = min(place * each, whole.shape[placement.dim])
            end = min(begin + each, whole.shape[placement.dim])
            whole = whole.narrow(placement.dim, begin, end - begin)
    return whole.contiguous()


def source_of(whole, mesh, placements):
    """Addends are the whole once and its negative twice, so that every sum is exact."""
    factor = 1
    for axis, placement in enumerate(placements):
        if placement.is_partial():
            # 2, then -1, then 0 ...: their sum is 1.
            factor *= {0: 2, 1: -1}.get(mesh.get_local_rank(axis), 0)
    return DTensor.from_local(
        local_of(whole, mesh, placements) * factor,
        mesh,
        placements,
        run_check=False,
        shape=whole.shape,
        stride=whole.stride(),
    )


def texts(placements):
    return "".join(str(placement) for placement in placements)


class Rank:
    def __init__(self, arguments, shape):
        self.arguments = arguments
        self.mesh = init_device_mesh("cpu", shape, mesh_dim_names=tuple("abcdefgh"[: len(shape)]))
        if arguments.flatten:
            self.mesh._flatten()
        extents = [int(extent) for extent in arguments.shape.split(",")]
        elements = math.prod(extents)
        # Small integers: exact in every dtype, also added.
        whole = torch.arange(elements, dtype=torch.int64) % 61
        self.whole = whole.reshape(extents).to(getattr(torch, arguments.dtype))
        self.counts = collections.Counter()
        self.times = []

    def pairs(self):
        shards = [Shard(dim) for dim in range(self.whole.ndim)]
        sources = [Replicate(), *shards] + [Partial()] * self.arguments.partial
        axes = range(self.mesh.ndim)
        for source in itertools.product(sources, repeat=len(axes)):
            for target in itertools.product([Replicate(), *shards], repeat=len(axes)):
                if self.arguments.pair in (None, f"{texts(source)},{texts(target)}"):
                    yield source, target

    def agreed(self, holds):
        """Whether it holds on all ranks."""
        flag = torch.tensor([int(holds)])
        dist.all_reduce(flag, dist.ReduceOp.MIN)
        return bool(flag.item())

    def ours(self, dtensor, target):
        return redistribute(dtensor, target, planner=self.arguments.planner)

    def check(self, source, target):
        x = source_of(self.whole, self.mesh, source)
        expected = local_of(self.whole, self.mesh, target)
        ours = self.ours(x, target)
        right = torch.equal(ours.to_local(), expected) and ours.placements == target
        try:
            theirs = torch.equal(x.redistribute(placements=target).to_local(), expected)
        except (RuntimeError, ValueError, AssertionError):
            theirs = False
        self.counts["pairs"] += 1
        if not self.agreed(right):
            self.counts["wrong"] += 1
            self.say(f"WRONG {texts(source)} -> {texts(target)}")
        if not self.agreed(theirs):
            self.counts["dtensor wrong"] += 1
            self.say(f"DTensor is wrong: {texts(source)} -> {texts(target)}")
        if self.whole.is_floating_point():
            self.check_backward(x, source, target)

    def check_backward(self, x, source, target):
        """The gradient of sum(y * whole) is the whole, where x holds it."""
        x = x.detach().requires_grad_()
        weights = source_of(self.whole, self.mesh, target)
        self.ours(x, target).mul(weights).to_local().sum().backward()
        kept = tuple(Replicate() if each.is_partial() else each for each in source)
        expected = local_of(self.whole, self.mesh, kept)
        right = x.grad.placements == kept and torch.equal(x.grad.to_local(), expected)
        if not self.agreed(right):
            self.counts["wrong"] += 1
            self.say(f"WRONG gradient {texts(source)} -> {texts(target)}")

    def check_across(self):
        """From the first half of the ranks to the second, and the gradient back."""
        half = dist.get_world_size() // 2
        first, second = (DeviceMesh("cpu", list(range(begin, begin + half))) for begin in (0, half))
        source, target = [Shard(0)], [Shard(self.whole.ndim - 1)]
        here = dist.get_rank() < half
        local = local_of(self.whole, first, source) if here else self.whole.new_empty(0)
        given = {"run_check": False, "shape": self.whole.shape, "stride": self.whole.stride()}
        x = DTensor.from_local(local, first, source, **given).requires_grad_()
        y = redistribute(x, target, second)
        expected = self.whole.new_empty(0) if here else local_of(self.whole, second, target)
        self.hold(torch.equal(y.to_local(), expected), "across meshes")
        y.backward(y.detach())
        right = not here or torch.equal(x.grad.to_local(), local)
        self.hold(right, "gradient across meshes")

    def check_beside(self):
        """DTensor's own method, and the second derivative."""
        source, target = [Shard(0)] * self.mesh.ndim, [Replicate()] * self.mesh.ndim
        x = source_of(self.whole, self.mesh, source)
        with redistributing(planner="p2p"):
            y = x.redistribute(placements=target)
        self.hold(torch.equal(y.to_local(), self.whole), "redistributing")
        self.hold(plan_of(x, target, planner="p2p").planner == "p2p", "plan_of")
        # (x^3)'' = 6 x
        x = x.detach().requires_grad_()
        cube = redistribute(x, target) ** 3
        (once,) = torch.autograd.grad(cube.sum(), x, create_graph=True)
        (twice,) = torch.autograd.grad(once.sum(), x)
        expected = 6 * local_of(self.whole, self.mesh, source)
        twice = redistribute(twice, source)
        self.hold(torch.equal(twice.to_local(), expected), "second derivative")

    def hold(self, right, what):
        if not self.agreed(right):
            self.counts["wrong"] += 1
            self.say(f"WRONG {what}")

    def collectives(self, x, target):
        with CommDebugMode() as mode:
            x.redistribute(placements=target)
        return mode.get_total_counts()

    def time(self, source, target):
        x = source_of(self.whole, self.mesh, source)
        if source == target or (count := self.collectives(x, target)) == 0:
            return
        found = ([], [])
        for repeat in range(2 * self.arguments.repeats + 2):
            dist.barrier()
            begin = time.perf_counter()
            if repeat % 2 and not self.arguments.null:
                self.ours(x, target)
            else:
                x.redistribute(placements=target)
            took = torch.tensor([time.perf_counter() - begin])
            dist.all_reduce(took, dist.ReduceOp.MAX)
            if repeat > 1:  # the first of each plans
                found[repeat % 2].append(took.item())
        theirs, ours = map(statistics.median, found)
        self.times.append((count, theirs / ours))
        ran = "DTensor" if self.arguments.null else "reshard"
        self.say(
            f"{texts(source):>12} -> {texts(target):<12} DTensor {1e3 * theirs:8.2f} ms, {count} "
            f"collectives, {ran} {1e3 * ours:8.2f} ms, {theirs / ours:5.2f} x"
        )

    def say(self, text):
        if dist.get_rank() == 0:
            print(text, flush=True)

    def summary(self):
        for name, least, most in (
            ("one collective", 1, 1),
            ("more than one", 2, math.inf),
            ("all", 1, math.inf),
        ):
            ratios = sorted(r for count, r in self.times if least <= count <= most)
            if ratios:
                mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))
                slower = sum(ratio < 0.9 for ratio in ratios)
                self.say(
                    f"{name}: {len(ratios)} pairs, {mean:.2f} x as fast in geometric mean, "
                    f"{ratios[0]:.2f} x at worst, {ratios[len(ratios) // 20]:.2f} x at 5 %, "
                    f"{statistics.median(ratios):.2f} x in the middle, {slower} below 0.9 x"
                )
        counts = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        self.say(counts)


def run(rank, arguments, shape):
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    os.environ.update(RANK=str(rank))
    dist.init_process_group("gloo")
    if arguments.steps:
        _execute.on_device = lambda array: True
    here = Rank(arguments, shape)
    for source, target in itertools.islice(here.pairs(), 0, None, arguments.every):
        if arguments.time:
            here.time(source, target)
        else:
            here.check(source, target)
    if not arguments.time and arguments.pair is None:
        here.check_beside()
        here.check_across()
    here.summary()
    dist.destroy_process_group()
    if here.counts["wrong"]:
        sys.exit(1)


def main():
    arguments = parse_arguments()
    shape = tuple(int(extent) for extent in arguments.mesh.split("x"))
    os.environ.update(
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=os.environ.get("MASTER_PORT", "29500"),
        WORLD_SIZE=str(math.prod(shape)),
        TORCH_LOGS="-all",
    )
    try:
        multiprocessing.spawn(run, (arguments, shape), math.prod(shape))
    except multiprocessing.ProcessExitedException as ended:
        sys.exit(ended.exit_code)


if __name__ == "__main__":
    main()
