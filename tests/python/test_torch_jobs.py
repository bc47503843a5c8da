# SPDX-License-Identifier: BSD-3-Clause
"""reshard.torch.redistribute_all on gloo processes: state dicts moved by one plan. Skipped without
torch; the processes import this file."""

import threading
import unittest
import warnings

try:
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import (
        DTensor,
        Partial,
        Replicate,
        Shard,
        init_device_mesh,
    )
except ImportError:
    torch = None

from every_planner import planners_between_meshes
from ranks import RANKS
from torch_cases import Cases, cut, expect, expect_refused, numbers

case = Cases("test_torch_jobs")


def all_moved(dtensors, placements, device_mesh=None, **options):
    from reshard.torch import redistribute_all

    return redistribute_all(dtensors, placements, device_mesh, **options)


def state_of(mesh):
    """Of other dtypes, numbers of dims and placements, and what each is as a whole."""
    wholes = {
        "embedding": numbers(9, 4),
        "wq": numbers(8, 6, dtype=torch.bfloat16, first=10),
        "wk": numbers(8, 6, dtype=torch.bfloat16, first=20),
        "bias": numbers(7, dtype=torch.float64, first=30),
        "steps": numbers(dtype=torch.int64, first=40),
        "mask": numbers(3, 5, 2, dtype=torch.bool),
        "phase": numbers(6, 4, dtype=torch.complex128, first=50),
        "codes": numbers(5, 4, dtype=torch.uint16, first=60),
    }
    placements = {
        "embedding": (Shard(0), Replicate()),
        "wq": (Shard(0), Shard(1)),
        "wk": (Shard(0), Shard(1)),
        "bias": (Shard(0), Shard(0)),
        "steps": (Replicate(), Replicate()),
        "mask": (Shard(1), Shard(2)),
        "phase": (Replicate(), Shard(0)),
        "codes": (Shard(1), Replicate()),
    }
    return {name: cut(whole, mesh, *placements[name]) for name, whole in wholes.items()}, wholes


TARGETS = {
    "embedding": "RS(1)",
    "wq": ["S(1)", "S(0)"],
    "wk": "S(1)S(0)",
    "bias": "RR",
    "steps": "RR",  # stays
    "mask": "S(0)R",
    "phase": "S(1)R",
    "codes": "RS(0)",
}


def expect_state(found, wholes, meshes, targets):
    """Every local tensor is what DTensor's own cutting of the whole gives this rank."""
    from reshard._torch_placements import placements_of

    expect(list(found) == list(wholes), str(list(found)))
    for name, whole in wholes.items():
        mesh = meshes[name] if isinstance(meshes, dict) else meshes
        target = placements_of(targets[name], whole.ndim, mesh.ndim)
        expect(found[name].placements == target, f"{name}: {found[name].placements}")
        expect(found[name].device_mesh is mesh, name)
        expect(found[name].dtype == whole.dtype, f"{name}: {found[name].dtype}")
        expect(found[name].shape == whole.shape, f"{name}: {found[name].shape}")
        local, expected = found[name].to_local(), cut(whole, mesh, *target).to_local()
        expect(torch.equal(local, expected), f"{name}: {local} for {expected}")
        expect(local.stride() == expected.contiguous().stride(), f"{name}: {local.stride()}")


# ---- what moves


@case
def a_state_dict_is_one_plan(mesh, line):
    from reshard.torch import plan_of_all

    state, wholes = state_of(mesh)
    plan = plan_of_all(state, TARGETS)
    moving = [name for name in state if name != "steps"]
    expect([tensor.name for tensor in plan.tensors] == moving, str(plan.tensors))
    expect(plan is plan_of_all(state, TARGETS), "planned twice")
    for options in ({}, {"planner": "packed"}, {"planner": "rule"}, {"topology": "dgx-a100"}):
        expect_state(all_moved(state, TARGETS, **options), wholes, mesh, TARGETS)
    expect(torch.equal(state["wq"].full_tensor(), wholes["wq"]), "the source has changed")
    # Within a limit of memory beyond the tensors, the least that works.
    limit = {"planner": "p2p", "extra_memory": 0}
    said = expect_refused(lambda: all_moved(state, TARGETS, **limit), "extra memory: expected at")
    limit["extra_memory"] = int(said.split()[5])
    less = plan_of_all(state, TARGETS, **limit).extra_bytes_max
    expect(less <= limit["extra_memory"], str(less))
    expect(less < plan_of_all(state, TARGETS, planner="p2p").extra_bytes_max, str(less))
    expect_state(all_moved(state, TARGETS, **limit), wholes, mesh, TARGETS)
    # One for all.
    found = all_moved(state, "RR")
    expect_state(found, wholes, mesh, dict.fromkeys(wholes, "RR"))


@case
def onto_other_meshes_of_all_and_of_some_ranks(mesh, line):
    state, wholes = state_of(mesh)
    one = {name: "R" if whole.ndim == 0 else "S(0)" for name, whole in wholes.items()}
    expect_state(all_moved(state, one, line), wholes, line, one)
    # Two stages of a pipeline to two others: a rank has no part of half of the tensors.
    first, last = DeviceMesh("cpu", [0, 1]), DeviceMesh("cpu", [2, 3])
    names = list(wholes)
    at = {name: (first, last)[i % 2] for i, name in enumerate(names)}
    to = {name: (first, last)[i // 2 % 2] for i, name in enumerate(names)}
    staged = {name: cut(whole, at[name], *_of(one[name])) for name, whole in wholes.items()}
    targets = {name: "R" if whole.ndim == 0 else f"S({whole.ndim - 1})"
               for name, whole in wholes.items()}  # fmt: skip
    for planner in planners_between_meshes():
        expect_state(all_moved(staged, targets, to, planner=planner), wholes, to, targets)
    # And back, in one call for one tensor.
    back = all_moved({"wq": all_moved(staged, targets, to)["wq"]}, one["wq"], at["wq"])
    expect(torch.equal(back["wq"].to_local(), staged["wq"].to_local()))


def _of(text):
    return [Replicate()] if text == "R" else [Shard(int(text[2]))]


@case
def addends_are_summed_and_kept(mesh, line):
    rank = dist.get_rank()
    row, column = mesh.get_coordinate()
    whole = numbers(8, 4)
    flags = numbers(4, 4, dtype=torch.bool, first=rank)
    dtensors = {
        "sums": DTensor.from_local(whole * (rank + 1), mesh, [Partial(), Partial()]),
        "means": DTensor.from_local(whole + 4 * row, mesh, [Partial("avg"), Replicate()]),
        "kept": DTensor.from_local(flags, mesh, [Replicate(), Partial()], run_check=False),
        "moved": cut(whole, mesh, Shard(0), Replicate()),
    }
    found = all_moved(
        dtensors, {"sums": "RS(0)", "means": "S(1)R", "kept": "RP(sum)", "moved": "RS(1)"}
    )
    expect(torch.equal(found["sums"].to_local(), 10 * whole.chunk(2, 0)[column]), "sums")
    expect(torch.equal(found["means"].to_local(), (whole + 2).chunk(2, 1)[row]), "means")
    expect(torch.equal(found["kept"].to_local(), flags), "kept")
    expect(torch.equal(found["moved"].to_local(), whole.chunk(2, 1)[column]), "moved")


@case
def what_torch_alone_knows_is_left_to_it(mesh, line):
    table, ids = numbers(16, 4), torch.tensor([1, 5, 9, 15, 3])
    masked = torch.nn.functional.embedding(cut(ids, line, Replicate()), cut(table, line, Shard(0)))
    other = numbers(8, 8)
    dtensors = {"masked": masked, "other": cut(other, line, Shard(0))}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = all_moved(dtensors, "R")
    said = [str(each.message) for each in said if "reshard" in str(each.message)]
    expect(len(said) == 1 and "_MaskPartial" in said[0], str(said))
    expect(torch.equal(found["masked"].to_local(), table[ids]), "masked")
    expect(torch.equal(found["other"].to_local(), other), "other")
    expect(list(found) == ["masked", "other"])


@case
def as_on_devices_with_messages_of_several_dtypes(mesh, line):
    """The steps that run on GPUs, on host memory."""
    from reshard._torch_transport import TorchTransport
    from reshard.torch import plan_of_all

    state, wholes = state_of(mesh)
    # Only as they are, without stand-ins.
    names = ("embedding", "wq", "wk", "bias", "mask")
    state = {name: state[name] for name in names}
    rank, seen = dist.get_rank(), set()
    # "rule" also has collectives.
    for planner in (*planners_between_meshes(), "rule"):
        plan = plan_of_all(state, {name: TARGETS[name] for name in names}, planner=planner)
        arrays = [
            (state[tensor.name].to_local(),
             torch.zeros(plan.shard_shapes(rank, tensor.name)[1],
                         dtype=state[tensor.name].dtype))
            for tensor in plan.tensors
        ]  # fmt: skip
        TorchTransport(None, mesh.get_all_groups()).run_on_device(plan, rank, arrays)
        for name, (_, found) in zip(names, arrays):
            expected = all_moved({name: state[name]}, TARGETS[name])[name].to_local()
            expect(torch.equal(found, expected), f"{planner}: {name}")
        seen |= {operation.kind for operation in plan.operations(rank).operations}
    expect(seen >= {"copy", "exchange", "all_gather"}, str(seen))
    # What a rank has no shard of may pass through it.
    dtypes = {tensor.dtype for tensor in plan.tensors}
    expect(dtypes == {"f32", "bf16", "f64", "bool"}, str(dtypes))


# ---- gradients


@case
def gradients_come_back_by_one_plan(mesh, line):
    a, b, c = numbers(8, 8), numbers(4, 6, first=3), numbers(6, first=5)
    x = {
        "a": cut(a, mesh, Shard(0), Shard(1)).requires_grad_(),
        "b": cut(b, mesh, Replicate(), Shard(0)).requires_grad_(),
        "c": cut(c, mesh, Shard(0), Replicate()),  # needs none
        "unused": cut(a, mesh, Shard(1), Replicate()).requires_grad_(),
        "stays": cut(a, mesh, Shard(1), Replicate()).requires_grad_(),
        "count": cut(numbers(4, dtype=torch.int64), mesh, Shard(0), Replicate()),
    }
    to = {"a": "S(1)R", "b": "S(0)S(1)", "c": "RR", "unused": "RR", "stays": "S(1)R", "count": "RR"}
    y = all_moved(x, to)
    needs = {name: each.requires_grad for name, each in y.items()}
    expect(needs == {**dict.fromkeys(to, True), "c": False, "count": False}, str(needs))
    loss = (y["a"] ** 3).sum() + (y["b"] * 2).sum() + (y["stays"] * 5).sum()
    loss.full_tensor().backward()
    for name, expected in (("a", 3 * a**2), ("b", 0 * b + 2), ("stays", 0 * a + 5)):
        expect(x[name].grad.placements == x[name].placements, name)
        expect(torch.equal(x[name].grad.full_tensor(), expected), name)
    expect(x["unused"].grad is None and x["c"].grad is None, "not asked for")
    # Twice.
    x = {name: x[name].detach().requires_grad_() for name in ("a", "b")}
    y = all_moved(x, {"a": "S(1)R", "b": "S(0)S(1)"})
    loss = (y["a"] ** 3).sum().full_tensor() + (y["b"] ** 2).sum().full_tensor()
    first = torch.autograd.grad(loss, list(x.values()), create_graph=True)
    total = sum((each**2).sum().full_tensor() for each in first)
    second = torch.autograd.grad(total, list(x.values()))
    expect(torch.equal(second[0].full_tensor(), 36 * a**3), "second of a")
    expect(torch.equal(second[1].full_tensor(), 8 * b), "second of b")
    with torch.no_grad():
        expect(not any(each.requires_grad for each in all_moved(x, "RR").values()))


@case
def gradients_across_meshes(mesh, line):
    whole = numbers(8, 8)
    addends = DTensor.from_local(whole + dist.get_rank(), mesh, [Partial(), Replicate()],
                                 run_check=False)  # fmt: skip
    x = {"w": cut(whole, mesh, Shard(0), Shard(1)).requires_grad_(),
         "p": addends.requires_grad_()}  # fmt: skip
    y = all_moved(x, "S(0)", line)
    ((y["w"] * 2).to_local().sum() + (y["p"] * 3).to_local().sum()).backward()
    expect(torch.equal(x["w"].grad.full_tensor(), 0 * whole + 2), "w")
    expect(x["p"].grad.placements == (Replicate(), Replicate()), str(x["p"].grad.placements))
    expect(bool((x["p"].grad.to_local() == 3).all()), "p")


# ---- threads, compiled code


@case
def threads_move_jobs_at_once(mesh, line):
    failures = []

    def run(k):
        try:
            wholes = {name: numbers(8, 8, first=10 * k + i) for i, name in enumerate("abc")}
            x = {name: laid_here(whole, mesh) for name, whole in wholes.items()}
            for _ in range(20):
                y = all_moved(x, "S(1)S(0)", lane=f"lane {k}")
                row, column = mesh.get_coordinate()
                for name, whole in wholes.items():
                    expected = whole.chunk(2, 1)[row].chunk(2, 0)[column]
                    expect(torch.equal(y[name].to_local(), expected), name)
        except Exception as failure:  # noqa: BLE001
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def laid_here(whole, mesh):
    row, column = mesh.get_coordinate()
    local = whole.chunk(2, 0)[row].chunk(2, 1)[column].contiguous()
    return DTensor.from_local(local, mesh, [Shard(0), Shard(1)], run_check=False)


@case
def equal_meshes_with_groups_of_their_own(mesh, line):
    other = init_device_mesh("cpu", (2, RANKS // 2))
    whole = numbers(8, 8)
    for source in (mesh, other, mesh):
        x = {"w": cut(whole, source, Shard(0), Shard(1)), "v": cut(whole, line, Shard(1))}
        y = all_moved(x, {"w": "S(1)", "v": "S(0)R"}, {"w": line, "v": source})
        expect(torch.equal(y["w"].full_tensor(), whole), "w")
        expect(torch.equal(y["v"].full_tensor(), whole), "v")
        expect(y["v"].device_mesh is source, "mesh")


@case
def compiled_code_leaves_its_graph(mesh, line):
    whole = numbers(8, 8)
    x = cut(whole, mesh, Shard(0), Shard(1))

    @torch.compile(backend="eager")
    def run(x):
        y = all_moved({"a": x * 2, "b": x + 1}, "S(1)R")
        return y["a"] + y["b"]

    expect(torch.equal(run(x).full_tensor(), 3 * whole + 1))


# ---- what is refused


@case
def wrong_arguments(mesh, line):
    whole = numbers(8, 8)
    x = {"a": cut(whole, mesh, Shard(0), Shard(1)), "b": cut(whole, mesh, Shard(0), Shard(1))}
    for dtensors in ({}, [x["a"]], x["a"], None):
        expect_refused(lambda given=dtensors: all_moved(given, "RR"), "dtensors: expected a dict")
    expect_refused(lambda: all_moved({**x, "c": whole}, "RR"), "dtensors['c']: expected a DTensor")
    expect_refused(lambda: all_moved({7: x["a"]}, "RR"), "expected strings as names, found 7")
    expect_refused(lambda: all_moved(x, {"a": "RR"}), "placements: expected one for each of")
    expect_refused(
        lambda: all_moved(x, {"a": "RR", "b": "RR", "c": "RR"}), "expected names of dtensors, found"
    )
    expect_refused(lambda: all_moved(x, {"a": "RR", "b": "RS(7)"}), "dtensors['b'].")
    expect_refused(lambda: all_moved(x, {"a": "RR", "b": "R"}), "dtensors['b'].")
    expect_refused(lambda: all_moved(x, "RR", "line"), "device_mesh['a']: expected a DeviceMesh")
    expect_refused(lambda: all_moved(x, "R", {"a": line}), "device_mesh: expected one for each of")
    expect_refused(lambda: all_moved(x, "RR", lane=7), "lane: expected a string")
    expect_refused(lambda: all_moved(x, "RR", planner="fastest"), "fastest")
    expect_refused(lambda: all_moved(x, "RR", memory_limit=10), "memory limit")
    freed = "free_source: expected False, as DTensors keep their shards while they are moved"
    expect_refused(lambda: all_moved(x, "RR", free_source=True), freed)
    expect_refused(lambda: all_moved(x, "RR", free_source=1), "free_source: expected True or False")
    expect_refused(lambda: all_moved(x, "P(max)P(max)"), "dtensors['a']: axis 0")
    from reshard.torch import plan_of_all

    expect_refused(lambda: plan_of_all(x, "S(0)S(1)"), "expected one that moves, found none")
    expect(torch.equal(all_moved(x, "S(0)S(1)")["a"].to_local(), x["a"].to_local()), "stays")


@case
def ranks_with_other_jobs_are_told(mesh, line):
    whole = numbers(8, 8)
    names = ["a", "b", "c", "d", "e", "f"]
    if dist.get_rank() == 2:  # differ behind what a short text of the job would show
        names = ["a", "b", "c", "d", "f", "e"]
    placements = {name: [Shard(0), Shard(1)] for name in names}
    placements["e"] = [Shard(1), Shard(0)]
    x = {name: cut(whole, mesh, *placements[name]) for name in names}
    expect_refused(
        lambda: all_moved(x, "S(1)R", planner="p2p"), "rank 2 uses a different plan from rank",
        "uses a different plan from rank 2;",
    )  # fmt: skip


@case
def a_local_tensor_that_does_not_fit_is_named(mesh, line):
    odd = dist.get_rank() % 2
    local = torch.zeros(3 if odd else 4, 5)
    x = {
        "good": cut(numbers(8, 8), mesh, Shard(0), Shard(1)),
        "bad": DTensor.from_local(
            local, mesh, [Shard(0), Shard(1)], run_check=False, shape=(8, 10), stride=(10, 1)
        ),
    }
    expect_refused(
        lambda: all_moved(x, "S(1)R"),
        "dtensors['bad']: expected a local tensor of shape [4, 5], given its shape, mesh and "
        "placements, found [3, 5]" if odd else "refused to redistribute its local tensor",
    )  # fmt: skip


@unittest.skipIf(torch is None, "no torch")
class TorchJobsTest(unittest.TestCase):
    def test_all_cases_through_shared_memory_and_as_messages(self):
        case.check(self)
