# SPDX-License-Identifier: BSD-3-Clause
"""reshard.torch on gloo processes: several threads that redistribute at once, and the kinds of
local tensors, placements and gradients of a DTensor. Skipped without torch; the processes import
this file."""

import threading
import unittest
import warnings

try:
    import torch
    import torch.distributed as dist
    from torch.distributed.tensor import (
        DTensor,
        Partial,
        Replicate,
        Shard,
        distribute_tensor,
        init_device_mesh,
    )
    from torch.distributed.tensor.placement_types import _StridedShard
except ImportError:
    torch = None

import reshard
from ranks import RANKS
from torch_cases import Cases, expect, expect_refused

case = Cases("test_torch")


def laid(whole, mesh, *placements):
    return distribute_tensor(whole, mesh, list(placements))


def moved(x, *placements, **options):
    from reshard.torch import redistribute

    return redistribute(x, list(placements), **options)


# ---- threads


def run_threads(mesh_of, calls, work, count=4):
    wrong, failures = [0] * count, []

    def run(k):
        mesh = mesh_of[k]
        row, column = mesh.get_coordinate()
        whole = torch.arange(64 * 64, dtype=torch.float32).reshape(64, 64) + 10000 * k
        x = laid_here(whole, mesh, row, column)
        expected = whole.chunk(2, 1)[row].chunk(2, 0)[column]
        try:
            for call in range(calls):
                wrong[k] += not work(k, call, x, expected)
        except Exception as failure:  # noqa: BLE001
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    expect(wrong == [0] * count, f"wrong results: {wrong}")


def laid_here(whole, mesh, row, column):
    local = whole.chunk(2, 0)[row].chunk(2, 1)[column].contiguous()
    return DTensor.from_local(local, mesh, [Shard(0), Shard(1)], run_check=False)


def forth(k, call, x, expected):
    return torch.equal(moved(x, Shard(1), Shard(0)).to_local(), expected)


@case
def threads_on_one_mesh(mesh, line):
    run_threads([mesh] * 4, 50, forth)


@case
def threads_on_meshes_of_their_own(mesh, line):
    run_threads([init_device_mesh("cpu", (2, 2)) for _ in range(4)], 50, forth)


@case
def threads_of_a_rank_that_started_others_before(mesh, line):
    leave = threading.Event()
    for _ in range(dist.get_rank()):
        threading.Thread(target=leave.wait, daemon=True).start()
    run_threads([mesh] * 4, 20, forth)
    leave.set()


@case
def threads_beside_gradients_and_messages_of_the_user(mesh, line):
    def work(k, call, x, expected):
        x = x.detach().requires_grad_()
        y = moved(x, Shard(1), Shard(0))
        right = torch.equal(y.to_local(), expected)
        (y * y).to_local().sum().backward()
        right = right and torch.equal(x.grad.to_local(), 2 * x.to_local())
        if k == 0:  # in the default group, by the tags that DTensor's neighbours use
            there, back = torch.tensor([float(call)]), torch.empty(1)
            rank = dist.get_rank()
            works = [dist.irecv(back, (rank - 1) % RANKS), dist.isend(there, (rank + 1) % RANKS)]
            for each in works:
                each.wait()
            right = right and back.item() == call
        return right

    run_threads([mesh] * 4, 20, work)


@case
def a_pool_is_refused_unless_lanes_are_named(mesh, line):
    import concurrent.futures

    row, column = mesh.get_coordinate()
    meet = threading.Barrier(3)

    def work(k, lane=None):
        whole = torch.arange(64.0).reshape(8, 8) + 100 * k
        x = laid_here(whole, mesh, row, column)
        expected = whole.chunk(2, 1)[row].chunk(2, 0)[column]
        meet.wait()
        try:
            found = [moved(x, Shard(1), Shard(0), lane=lane) for _ in range(30)]
            return all(torch.equal(each.to_local(), expected) for each in found)
        except reshard.InputError as error:
            return str(error)

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        named = list(pool.map(work, range(3), ["a", "b", "c"]))
        expect(named == [True] * 3, named)
        unnamed = list(pool.map(work, range(3)))
    # On the diagonal nothing travels: there calls may be over before the next one begins.
    alone = row == column
    for each in unnamed:
        worded = "a lane= that is equal on all ranks" in str(each)
        expect(worded or (alone and each is True), unnamed)


# ---- what is refused


@case
def ranks_with_other_plans_are_told(mesh, line):
    x = laid(torch.arange(64.0).reshape(8, 8), mesh, Shard(0), Shard(1))
    target = (Shard(1), Replicate()) if dist.get_rank() % 2 else (Replicate(), Shard(1))
    expect_refused(lambda: moved(x, *target, planner="rule"), "uses a different plan from rank")


@case
def a_local_tensor_that_does_not_fit_is_said_by_all(mesh, line):
    odd = dist.get_rank() % 2
    local = torch.zeros(3 if odd else 4, 5)
    x = DTensor.from_local(
        local, mesh, [Shard(0), Shard(1)], run_check=False, shape=(8, 10), stride=(10, 1)
    )
    expect_refused(
        lambda: moved(x, Shard(1), Replicate()),
        "expected a local tensor of shape [4, 5], given its shape, mesh and placements, found "
        "[3, 5]" if odd else "refused to redistribute its local tensor",
    )  # fmt: skip


@case
def texts_become_placements(mesh, line):
    whole = torch.arange(64.0).reshape(8, 8)
    x = laid(whole, mesh, Shard(0), Shard(1))
    from reshard.torch import redistribute

    ours = [reshard.Shard(-1), reshard.Replicate()]
    for target in ("S(1)R", ["S(1)", "R"], "Shard(1), Replicate()", ours, (Shard(-1), Replicate())):
        y = redistribute(x, target)
        expect(y.placements == (Shard(1), Replicate()), str(y.placements))
        expect(torch.equal(y.full_tensor(), whole))
    y = redistribute(x, "_S(0,2)S(0)")
    expect(y.placements == (_StridedShard(0, split_factor=2), Shard(0)), str(y.placements))
    expect_refused(lambda: redistribute(x, "S(0)[1]S(0)[0]"), "without an order of axes")
    expect_refused(lambda: redistribute(x, "S(1)R", lane=7), "lane: expected a string")
    expect_refused(
        lambda: redistribute(x, "S(1)R", free_source=True),
        "free_source: expected False, as DTensors keep their shards while they are moved",
    )


# ---- local tensors, dtypes, strides


@case
def local_tensors_that_are_not_there_yet(mesh, line):
    whole = torch.arange(64.0).reshape(8, 8)
    x = laid(whole, mesh, Shard(0), Shard(1))
    y = x.redistribute(placements=[Replicate(), Shard(1)], async_op=True)
    expect(torch.equal(moved(y, Shard(1), Replicate()).full_tensor(), whole))


@case
def strides_and_conjugates_stay_true(mesh, line):
    whole = torch.arange(48.0).reshape(6, 8)
    turned = laid(whole, mesh, Shard(0), Shard(1)).t()
    for y in (moved(turned, *turned.placements), moved(turned, Replicate(), Replicate())):
        expect(torch.equal(y.full_tensor(), whole.t()))
        order = [stride > y.stride()[0] for stride in y.stride()]
        local = y.to_local().stride()
        expect(order == [stride > local[0] for stride in local], f"{y.stride()} of {local}")
    pairs = torch.complex(whole, whole + 1)
    y = moved(laid(pairs, mesh, Shard(0), Shard(1)).conj(), Replicate(), Replicate())
    expect(torch.equal(y.to_local(), pairs.conj().resolve_conj()))


@case
def dtypes_that_only_move(mesh, line):
    row, column = mesh.get_coordinate()
    bits = torch.arange(64, dtype=torch.uint8).reshape(8, 8)
    names = "uint16 uint32 uint64 complex128 float8_e8m0fnu float4_e2m1fn_x2 float8_e4m3fn bool"
    for name in names.split():
        dtype = getattr(torch, name, None)
        if dtype is None:
            continue
        seen = name.startswith("float")
        local = bits[4 * row : 4 * row + 4, 4 * column : 4 * column + 4].contiguous()
        expected = bits[:, 4 * row : 4 * row + 4].contiguous()
        local, expected = (t.view(dtype) if seen else t.to(dtype) for t in (local, expected))
        x = DTensor.from_local(local, mesh, [Shard(0), Shard(1)], run_check=False)
        y = moved(x, Shard(1), Replicate()).to_local()
        expect(y.dtype == dtype and y.shape == expected.shape, name)
        expect(torch.equal(y.view(torch.uint8), expected.view(torch.uint8)), name)


@case
def addends_that_are_kept(mesh, line):
    row, column = mesh.get_coordinate()
    for dtype, op in ((torch.bool, "sum"), (torch.int64, "avg"), (torch.uint32, "sum")):
        parts = [(torch.arange(32).reshape(4, 8) + 7 * row + 32 * k).to(dtype) for k in (0, 1)]
        x = DTensor.from_local(parts[column], mesh, [Partial(op), Shard(0)], run_check=False)
        y = moved(x, Partial(op), Replicate())
        expect(torch.equal(y.to_local(), torch.cat(parts)), str(dtype))
    ones = torch.ones(8, 8, dtype=torch.complex128) * (dist.get_rank() + 1j)
    x = DTensor.from_local(ones, mesh, [Partial(), Partial()], run_check=False)
    expect(bool((moved(x, Replicate(), Replicate()).to_local() == 6 + 4j).all()))


# ---- DTensor's own


@case
def what_torch_alone_knows_is_left_to_it_and_said_once(mesh, line):
    from reshard.torch import redistributing

    table = torch.arange(64.0).reshape(16, 4)
    ids = torch.tensor([1, 5, 9, 15, 3])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for within in (False, True, True):
            y = torch.nn.functional.embedding(
                laid(ids, line, Replicate()), laid(table, line, Shard(0))
            )
            expect(type(y.placements[0]).__name__ == "_MaskPartial")
            if within:
                with redistributing():
                    y = y.redistribute(placements=[Replicate()])
            else:
                y = moved(y, Replicate())
            expect(torch.equal(y.to_local(), table[ids]))
    said = [str(each.message) for each in said if "reshard" in str(each.message)]
    expect(len(said) == 1 and "_MaskPartial" in said[0], str(said))


@case
def redistributing_reaches_all_calls_of_its_thread(mesh, line):
    from reshard.torch import redistributing

    theirs = DTensor.redistribute
    whole = torch.arange(64.0).reshape(8, 8)
    x = laid(whole, mesh, Shard(0), Shard(1)).requires_grad_()
    target = [Replicate(), Replicate()]
    with redistributing(planner="p2p"):
        y = x.redistribute(placements=target, async_op=True)
        half = x.redistribute(
            placements=target, forward_dtype=torch.bfloat16, backward_dtype=torch.float32
        )
        seen = []
        thread = threading.Thread(
            target=lambda: seen.append(laid(whole, line, Replicate()).redistribute)
        )
        thread.start()
        thread.join()
    expect(type(y._local_tensor) is torch.Tensor, "async_op is theirs")
    expect("_Redistribute" in type(y.grad_fn).__name__, type(y.grad_fn).__name__)
    expect(half.dtype == torch.bfloat16)
    half.to_local().float().sum().backward()
    expect(x.grad.dtype == torch.float32)
    # Left in another order than entered.
    first, second = redistributing(), redistributing(planner="rule")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    expect(DTensor.redistribute is not theirs)
    second.__exit__(None, None, None)
    expect(DTensor.redistribute is theirs)


@case
def gradients_across_meshes_of_other_axes(mesh, line):
    whole = torch.arange(64.0).reshape(8, 8)
    x = laid(whole, mesh, Shard(0), Shard(1)).requires_grad_()
    y = moved(x, Shard(0), device_mesh=line)
    expect(torch.equal(y.detach().full_tensor(), whole))
    y.backward(laid(whole, line, Shard(0)))
    expect(x.grad.placements == x.placements and torch.equal(x.grad.full_tensor(), whole))
    local = whole * (1 + dist.get_rank())
    x = DTensor.from_local(local, mesh, [Partial(), Shard(0)], run_check=False).requires_grad_()
    moved(x, Shard(0), device_mesh=line).to_local().sum().backward()
    expect(x.grad.placements == (Replicate(), Shard(0)), str(x.grad.placements))
    expect(bool((x.grad.to_local() == 1).all()))


@case
def compiled_code_leaves_its_graph(mesh, line):
    whole = torch.arange(64.0).reshape(8, 8)
    x = laid(whole, mesh, Shard(0), Shard(1))

    @torch.compile(backend="eager")
    def run(x):
        return moved(x * 2, Shard(1), Replicate()) + 1

    expect(torch.equal(run(x).full_tensor(), 2 * whole + 1))


@unittest.skipIf(torch is None, "no torch")
class TorchTest(unittest.TestCase):
    def test_all_cases_through_shared_memory_and_as_messages(self):
        case.check(self)
