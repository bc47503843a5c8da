# SPDX-License-Identifier: BSD-3-Clause
"""The answer to one call: the decision, and what rank 0 sees when the call runs.

Where PyTorch has a handler of its own for the operator, all is taken from the run.
"""

import contextlib
import re

import torch
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor import _dispatch as dispatch
from torch.distributed.tensor import _redistribute as redistribute
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor.debug import CommDebugMode, _clear_sharding_prop_cache
from torch.distributed.tensor.parallel import loss
from torch_arguments import arguments_of, flat, mesh_of, operator_of, tensors_of, text_of
from decisions import (
    DISPATCHER,
    decided,
    dense,
    first_sentence,
    is_composite,
    moved,
    outputs_of,
    steps_of,
)

COLLECTIVES = {
    "all_gather_into_tensor": "all_gather",
    "all_reduce": "all_reduce",
    "reduce_scatter_tensor": "reduce_scatter",
    "all_to_all_single": "all_to_all",
    "shard_dim_alltoall": "all_to_all",
}


@contextlib.contextmanager
def redistributions():
    """Collects the redistributions that a running call asks for."""
    seen = []
    original = redistribute.redistribute_local_tensor

    def noted(local, source, target, **options):
        seen.append((source, target))
        return original(local, source, target, **options)

    redistribute.redistribute_local_tensor = dispatch.redistribute_local_tensor = noted
    try:
        yield seen
    finally:
        redistribute.redistribute_local_tensor = dispatch.redistribute_local_tensor = original


@contextlib.contextmanager
def losses_in_parts():
    """PyTorch's own stays on when the call is refused."""
    loss._enable_custom_loss_ops()
    try:
        yield
    finally:
        loss._disable_custom_loss_ops()


def run(call):
    """Runs the call on rank 0: its result, the redistributions and the collectives."""
    torch.manual_seed(0)
    _clear_sharding_prop_cache()
    op, args, kwargs = arguments_of(call, real=True)
    context = losses_in_parts() if call.get("loss_parallel") else contextlib.nullcontext()
    with redistributions() as seen, CommDebugMode() as comm, context, torch.no_grad():
        out = op(*args, **kwargs)
    counts = {}
    for name, count in comm.get_comm_counts().items():
        kind = COLLECTIVES.get(str(name).rsplit(".", 1)[-1], str(name))
        counts[kind] = counts.get(kind, 0) + count
    return flat(out if isinstance(out, (list, tuple)) else [out]), seen, counts


def handled(call):
    """A call that a handler takes: what it does when run."""
    op, args, kwargs = arguments_of(call, real=False)
    dense(call, op, args, kwargs)
    sources = [None if t is None else t._spec for t in tensors_of(op, args, kwargs)]
    try:
        out, seen, counts = run(call)
    except Exception as error:
        return {"refused": first_sentence(error)}
    targets, implicit, copies = list(sources), [], []
    for source, target in seen:
        index = next(i for i, s in enumerate(targets) if s is not None and s == source)
        move = moved(index, source, target)
        if call.get("loss_parallel") and index == 2:  # a shard of the weight beside the whole
            copies.append(move)
            continue
        implicit += [move] if move["steps"] else []
        targets[index] = target
    specs = [result_spec(r, mesh_of(call["mesh"])) for r in out]
    return {
        "handler": True,
        "in": [None if t is None else text_of(t.placements) for t in targets],
        **outputs_of(specs),
        "implicit": implicit,
        **({"copies": copies} if copies else {}),
        "collectives": dict(sorted(counts.items())),
    }


def result_spec(result, mesh):
    if isinstance(result, DTensor):
        return result._spec
    if not isinstance(result, torch.Tensor):
        return None
    meta = TensorMeta(result.shape, result.stride(), result.dtype)
    return DTensorSpec(mesh, (Replicate(),) * mesh.ndim, tensor_meta=meta)


def told(call, expect):
    """Runs the call, for what propagation does not see: an error, or a decision not kept to."""
    try:
        out, seen, _ = run(call)
    except Exception as error:
        if re.search(r"Could not run|not implemented for", str(error)):
            return {}  # on a CPU
        return {"raises": first_sentence(error)}
    done = [(text_of(a.placements), text_of(b.placements)) for a, b in seen if steps_of(a, b)]
    found = outputs_of([result_spec(r, mesh_of(call["mesh"])) for r in out])
    same = done == [(move["from"], move["to"]) for move in expect["implicit"]]
    for i, result in enumerate(out if expect["out"] else []):
        for key in found if isinstance(result, DTensor) else ():
            same = same and found[key][i] == expect[key][i]
    return {} if same else {"run": {**found, "implicit": done}}


def answer(call):
    op = operator_of(call["call"])
    if call.get("loss_parallel") or op in DISPATCHER._custom_op_handlers:
        return handled(call)
    expect = decided(call)
    if is_composite(op):
        return {**expect, "composite": True}
    if "refused" not in expect and "MaskP" not in str(call["in"]):  # whose masks are made by a run
        expect.update(told(call, expect))
    return expect
