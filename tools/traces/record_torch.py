#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs a PyTorch script as one rank of a job that does not exist, and writes what it asks of
DTensor, in forward, backward and optimizer, as a trace for `reshard replay`.

Needs no GPU and no other ranks: the process group is PyTorch's fake one, in which collectives move
nothing. What the script prints is not what it would print in a real job; which operators run on
which tensors is.
"""

import argparse
import contextlib
import functools
import json
import os
import runpy
import sys

EXAMPLE = """example:
  python3 tools/traces/record_torch.py --world 4 --output mlp.jsonl train.py --layers 2
  reshard replay mlp.jsonl

Everything after SCRIPT is passed to the script. RANK, WORLD_SIZE, LOCAL_RANK and similar
variables are set as torchrun sets them. Exit codes: the script's own; 2 if PyTorch is missing or an
option is wrong.
"""


class Enough(BaseException):
    """Raised when the last step to record is done."""


def steps(text):
    """ "3": 1 to 3; "2-3": 2 to 3."""
    first, _, last = text.rpartition("-")
    first, last = int(first or 1), int(last)
    if not 1 <= first <= last:
        raise ValueError
    return first, last


def options(arguments):
    parser = argparse.ArgumentParser(
        prog="record_torch.py",
        usage="%(prog)s [options] SCRIPT [ARGS...]",
        description=__doc__,
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("script", metavar="SCRIPT", help="a Python script that uses DTensor")
    parser.add_argument("args", metavar="ARGS", nargs=argparse.REMAINDER, help="its arguments")
    parser.add_argument("--world", type=int, default=4, metavar="N", help="ranks (4)")
    parser.add_argument("--rank", type=int, default=0, help="rank of the script (0)")
    parser.add_argument("--output", metavar="FILE", help="file for the trace (standard output)")
    parser.add_argument(
        "--steps",
        type=steps,
        metavar="N|FIRST-LAST",
        help="record only the first N optimizer steps, or these",
    )
    parser.add_argument("--expect", action="store_true", help="add PyTorch's choice of placements")
    parser.add_argument("--topology", metavar="NAME", help="topology in the trace's header")
    parser.add_argument(
        "--no-memory",
        action="store_true",
        help="tensors without memory: models of any size; item() is 1",
    )
    parser.add_argument(
        "--counts", metavar="FILE", help="write the collectives by pass and kind, as JSON"
    )
    given = parser.parse_args(arguments)
    if given.world < 1 or not 0 <= given.rank < given.world:
        parser.error("--world must be at least 1, and --rank one of its ranks")
    if not os.path.isfile(given.script):
        parser.error(f"no such script: {given.script}")
    return given


def import_torch():
    try:
        import torch.distributed.tensor
    except ImportError:
        print(
            "record_torch.py: PyTorch with torch.distributed.tensor is required, but not found by "
            f"{sys.executable}: pip install torch",
            file=sys.stderr,
        )
        sys.exit(2)


def environment(given):
    rank, world = str(given.rank), str(given.world)
    os.environ.update(RANK=rank, LOCAL_RANK=rank, GROUP_RANK="0", ROLE_RANK=rank)
    os.environ.update(WORLD_SIZE=world, LOCAL_WORLD_SIZE=world)
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "29500")


def fake_process_group(given):
    """Whatever process group the script asks for, it gets the fake one of --world ranks."""
    import torch.distributed as dist
    from torch.distributed import device_mesh, distributed_c10d
    from torch.testing._internal.distributed.fake_pg import FakeStore

    make = distributed_c10d.init_process_group

    def wrapped(*args, **kwargs):
        make("fake", rank=given.rank, world_size=given.world, store=FakeStore())

    for module in (dist, distributed_c10d, device_mesh):
        if hasattr(module, "init_process_group"):
            module.init_process_group = wrapped


def without(given):
    """Contexts that replace what this machine lacks."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch_recorder.without_gpu import WithoutGpu

    contexts = [] if torch.cuda.is_available() else [WithoutGpu()]
    if given.no_memory:
        memoryless()
        contexts.append(FakeTensorMode(allow_non_fake_inputs=True))
    return contexts


def memoryless():
    """Patches what PyTorch cannot do with tensors without values."""
    import torch
    from torch._subclasses.fake_tensor import unset_fake_temporarily
    from torch.distributed import device_mesh

    def real(function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with unset_fake_temporarily():
                return function(*args, **kwargs)

        return wrapped

    # A mesh keeps its ranks in a tensor.
    device_mesh.DeviceMesh.__init__ = real(device_mesh.DeviceMesh.__init__)
    make = device_mesh.init_device_mesh
    for module in list(sys.modules.values()):
        if getattr(module, "init_device_mesh", None) is make:
            module.init_device_mesh = real(make)
    # Module.to swaps its tensors for others, which is not possible while their mode refers to them.
    torch.utils.swap_tensors = lambda one, other: setattr(one, "data", other)
    # What a script prints does not matter here, and nothing else needs a value.
    torch.Tensor.item = lambda tensor: 1.0 if tensor.is_floating_point() else 1


def count_steps(given, recorder):
    from torch.optim.optimizer import register_optimizer_step_post_hook

    first, last = given.steps
    done = 0
    recorder.recording = first == 1

    def stepped(*_):
        nonlocal done
        done += 1
        recorder.recording = done + 1 >= first
        if done == last:
            raise Enough

    register_optimizer_step_post_hook(stepped)


def run(given, recorder, watch, without):
    """Runs the script as `python3 SCRIPT ARGS` would."""
    sys.argv = [given.script, *given.args]
    sys.path[0] = os.path.dirname(os.path.abspath(given.script))
    with contextlib.ExitStack() as stack:
        for each in (*without, watch, recorder):
            stack.enter_context(each)
        runpy.run_path(given.script, run_name="__main__")


def check_counts(recorder, watch):
    """Exits unless PyTorch's own count of the same run is equal to ours."""
    ours = sum(sum(counts.values()) for counts in recorder.counts.values())
    theirs = watch.get_total_counts()
    if ours != theirs:
        print(
            f"record_torch.py: counted {ours} collectives where CommDebugMode counts {theirs}",
            file=sys.stderr,
        )
        sys.exit(3)


def write(given, recorder):
    from torch_recorder.document import write_whole

    document = recorder.document
    if given.output:
        write_whole(given.output, document.text())
    else:
        sys.stdout.write(document.text())
    if given.counts:
        write_whole(given.counts, json.dumps(recorder.counts) + "\n")
    for what, count in sorted(document.left_out.items()):
        print(f"record_torch.py: left out {count} {what}: traces have none", file=sys.stderr)


def main():
    given = options(sys.argv[1:])
    import_torch()
    environment(given)
    from torch.distributed.tensor.debug import CommDebugMode
    from torch_recorder.document import Document
    from torch_recorder.recorder import Recorder

    fake_process_group(given)
    recorder = Recorder(Document(given.topology), given.expect)
    recorder.install()
    if given.steps:
        count_steps(given, recorder)
    watch = CommDebugMode() if given.counts else contextlib.nullcontext()
    try:
        with contextlib.suppress(Enough):
            run(given, recorder, watch, without(given))
    finally:
        write(given, recorder)
    if given.counts and not given.steps:
        check_counts(recorder, watch)


if __name__ == "__main__":
    main()
