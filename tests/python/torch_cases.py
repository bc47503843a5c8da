# SPDX-License-Identifier: BSD-3-Clause
"""Cases of reshard.torch, which every rank runs in a process of its own."""

import os
import sys

try:
    import torch
    import torch.distributed as dist
    from torch.distributed.tensor import DTensor, Shard, init_device_mesh
    from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
except ImportError:
    torch = None

import reshard
from ranks import RANKS, run_ranks


class Cases:
    """Of a test file, which names it `case` and decorates functions of two meshes with it: one of
    two axes and one of one axis."""

    def __init__(self, module):
        self._start = f"import sys, {module}; {module}.case.run(*sys.argv[1:])"
        self._functions = {}

    def __call__(self, function):
        self._functions[function.__name__] = function
        return function

    def run(self, name, rank, port):
        """In the process of a rank."""
        import datetime

        os.environ.update(
            MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=rank, WORLD_SIZE=str(RANKS)
        )
        torch.set_num_threads(1)
        dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=200))
        mesh = init_device_mesh("cpu", (2, RANKS // 2))
        line = init_device_mesh("cpu", (RANKS,))
        failed = False
        for each in list(self._functions) if name == "all" else [name]:
            try:
                self._functions[each](mesh, line)
            except Exception as error:  # noqa: BLE001
                failed = True
                print(f"rank {rank}: {each}: {type(error).__name__}: {error}", flush=True)
            dist.barrier()
        dist.destroy_process_group()
        sys.exit(failed)

    def check(self, test):
        """All cases, or the one in RESHARD_TORCH_CASE, through shared memory and as messages."""
        wanted = os.environ.get("RESHARD_TORCH_CASE", "all")
        for shared in "10":
            with test.subTest(shared=shared):
                ended, said = run_ranks(self._start, wanted, RESHARD_SHARED_MEMORY=shared)
                test.assertEqual(ended, [0] * RANKS, "\n".join(said))


def expect(holds, what="value"):
    if not holds:
        raise AssertionError(what)


def expect_refused(function, *texts):
    """Returns what the error says."""
    try:
        function()
    except reshard.InputError as error:
        expect(any(text in str(error) for text in texts), str(error))
        return str(error)
    raise AssertionError(f"not refused: {texts[0]}")


def numbers(*shape, dtype=None, first=0):
    """first, first + 1, ... below 100."""
    count = 1
    for extent in shape:
        count *= extent
    dtype = dtype or torch.float32
    values = (torch.arange(count, dtype=torch.int64) + first) % 100
    return (values % 2 == 1 if dtype == torch.bool else values.to(dtype)).reshape(shape)


def cut(whole, mesh, *placements):
    """As distribute_tensor, for all dtypes; a rank outside of the mesh has an empty tensor."""
    place = mesh.get_coordinate()
    local = whole.new_empty(0) if place is None else whole
    for axis, placement in enumerate(placements if place is not None else ()):
        if isinstance(placement, Shard):
            extent = local.shape[placement.dim]
            each = -(-extent // mesh.size(axis))
            begin = min(place[axis] * each, extent)
            local = local.narrow(placement.dim, begin, min(begin + each, extent) - begin)
    meta = TensorMeta(whole.shape, whole.stride(), whole.dtype)
    spec = DTensorSpec(mesh, tuple(placements), tensor_meta=meta)
    return DTensor(local.contiguous(), spec, requires_grad=False)
