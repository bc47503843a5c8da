# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch's dispatch decides for one call, and what rank 0 sees when the call runs, as plain
data. README.md says what the fields mean.

The operator is called on DTensors and left as soon as sharding propagation has answered. The answer
depends on where it is asked: a decomposition finds other candidates below dispatch than above.
Where PyTorch has a handler of its own for the operator, everything is taken from a run.
"""

import contextlib
import math
import re
from unittest.mock import patch

import torch
from calls import arguments_of, flat, mesh_of, operator_of, tensors_of
from placements import text
from torch._subclasses.fake_tensor import DynamicOutputShapeException
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor import _dispatch as dispatch
from torch.distributed.tensor import _redistribute as redistribute
from torch.distributed.tensor import _sharding_prop as propagation
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor.debug import CommDebugMode, _clear_sharding_prop_cache
from torch.distributed.tensor.parallel import loss
from torch.utils._dtype_abbrs import dtype_abbrs
from torch.utils._pytree import tree_leaves

DISPATCHER = DTensor._op_dispatcher
PROPAGATOR = DISPATCHER.sharding_propagator
COLLECTIVES = {
    "all_gather_into_tensor": "all_gather",
    "all_reduce": "all_reduce",
    "reduce_scatter_tensor": "reduce_scatter",
    "all_to_all_single": "all_to_all",
    "shard_dim_alltoall": "all_to_all",
}


class InvalidCall(Exception):
    """The call is wrong even on whole tensors, so no placement is to blame."""


class Asked(BaseException):
    """Leaves dispatch as soon as the decision is there; no handler in PyTorch catches it."""


def first_sentence(error):
    if "Sharding propagation failed" in str(error) and error.__cause__ is not None:
        error = error.__cause__  # what dispatch wraps
    line = str(error).strip().split("\n")[0]
    found = re.match(r"(.*?[.!?])(?=\s+[A-Z]|$)", line)
    kind = "" if isinstance(error, (RuntimeError, ValueError)) else type(error).__name__ + ": "
    return kind + (found.group(1) if found else line)[:300]


def move(index, source, target):
    steps = []
    for step in redistribute._gen_transform_infos(source, target):
        before, after = step.src_dst_placements
        if before != after:
            steps.append(f"{step.mesh_dim}:{before}->{after}")
    placements = {"from": text(source.placements), "to": text(target.placements)}
    return {"input": index, **placements, "steps": steps}


@contextlib.contextmanager
def choices():
    """Collects what the choice was made from: the schema, the cost chosen, how many candidates
    there were, and how many of them have that cost."""
    seen, original = [], propagation._select_min_cost_strategy

    def select(strategy, op_schema=None):
        chosen = original(strategy, op_schema)
        costs = [sum(sum(c) for c in s.redistribute_cost or []) for s in strategy.strategies]
        at = next(i for i, s in enumerate(strategy.strategies) if s is chosen)
        seen.append((op_schema, (costs[at], len(costs), costs.count(costs[at]))))
        return chosen

    with patch.object(propagation, "_select_min_cost_strategy", select):
        yield seen


def cost_of(seen, schema):
    """The choice for the schema itself, not for the parts of its decomposition; or for all parts
    where the schema is a list of calls."""
    whole = [choice for of, choice in seen if of is schema]
    seen = whole or [choice for of, choice in seen if of is None] or [(0.0, 1, 1)]
    total = sum(cost for cost, _, _ in seen)
    out = {
        "cost_us": total if math.isfinite(total) else None,
        "candidates": sum(n for _, n, _ in seen),
        "ties": max(n for _, _, n in seen),
    }
    if len(seen) > 1:
        out["each"] = [[c if math.isfinite(c) else None, n, t] for c, n, t in seen]
    return out


def outputs_of(specs):
    specs = flat(specs if isinstance(specs, (list, tuple)) else [specs] if specs else [])
    return {
        "out": [s and text(s.placements) for s in specs],
        "out_shape": [s and list(s.shape) for s in specs],
        "out_dtype": [s and dtype_abbrs[s.tensor_meta.dtype] for s in specs],
    }


def check_on_whole_tensors(op, args, kwargs):
    if op in (torch.ops.aten.equal.default, torch.ops.aten._local_scalar_dense.default):
        return
    info = DISPATCHER.unwrap_to_op_info(op, args, kwargs)
    try:
        PROPAGATOR._propagate_tensor_meta_non_cached(info.schema)
    except DynamicOutputShapeException:
        pass  # propagation does not get past this either
    except Exception as error:
        raise InvalidCall(f"{op.name()}: {first_sentence(error)}") from error


def is_composite(op):
    """Whether the operator reaches dispatch in inference mode only; it is taken apart before that
    otherwise."""
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    return torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key)


def propagated(op, args, kwargs):
    """The schema that dispatch asks about and what it is told."""
    original, told = PROPAGATOR.propagate_op_sharding_non_cached, []

    def ask(schema):
        told.append(schema)
        told.append(original(schema))
        raise Asked

    if is_composite(op):
        schema = DISPATCHER.unwrap_to_op_info(op, args, kwargs).schema
        return schema, original(schema)
    with (patch.object(PROPAGATOR, "propagate_op_sharding_non_cached", ask),
          contextlib.suppress(Asked)):
        op(*args, **kwargs)
    assert told, f"{op} does not ask"
    return told


def targets_of(op, sources, info, sharding):
    """The spec that each tensor has when the local operator runs."""
    if not sharding.needs_redistribute or sharding.redistribute_schema is None:
        return sources
    schema = sharding.redistribute_schema.args_schema
    schema = tree_leaves(schema) if info.args_tree_spec is not None else list(schema)
    of = {}
    for before, after in zip(info.flat_args_schema, schema):
        if isinstance(before, DTensorSpec):
            of.setdefault(id(before), []).append(after)
    return [of[id(s)].pop(0) if s is not None and id(s) in of else s for s in sources]


def specs_of(tensors):
    return [None if t is None else t._spec for t in tensors]


def decided(call):
    op, args, kwargs = arguments_of(call, real=False)
    check_on_whole_tensors(op, args, kwargs)
    _clear_sharding_prop_cache()  # whose keys lack some of what the rules read
    with choices() as seen:
        try:
            schema, sharding = propagated(op, args, kwargs)
        except Exception as error:
            return {"refused": first_sentence(error)}
    sources = specs_of(tensors_of(op, args, kwargs))
    targets = targets_of(op, sources, DISPATCHER.unwrap_to_op_info(op, args, kwargs), sharding)
    moves = [move(index, source, target)
             for index, (source, target) in enumerate(zip(sources, targets))
             if source is not None and source != target]
    return {
        "in": [None if t is None else text(t.placements) for t in targets],
        **outputs_of(sharding.output_spec),
        **cost_of(seen, schema),
        "implicit": [m for m in moves if m["steps"]],
    }


@contextlib.contextmanager
def redistributions():
    """Collects the redistributions that a running call asks for."""
    seen, original = [], redistribute.redistribute_local_tensor

    def noted(local, source, target, **options):
        seen.append((source, target))
        return original(local, source, target, **options)

    with (patch.object(redistribute, "redistribute_local_tensor", noted),
          patch.object(dispatch, "redistribute_local_tensor", noted)):
        yield seen


def run(call):
    """Runs the call on rank 0: its result, the redistributions and the collectives."""
    torch.manual_seed(0)
    _clear_sharding_prop_cache()
    op, args, kwargs = arguments_of(call, real=True)
    with contextlib.ExitStack() as stack, CommDebugMode() as comm, torch.no_grad():
        seen = stack.enter_context(redistributions())
        if call.get("loss_parallel"):  # PyTorch's own context stays on when the call is refused
            loss._enable_custom_loss_ops()
            stack.callback(loss._disable_custom_loss_ops)
            if isinstance(args[-1], DTensor):  # total_weight, as the forward's handler returns it
                args = (*args[:-1], args[-1].to_local())
        out = op(*args, **kwargs)
    counts = {}
    for name, count in comm.get_comm_counts().items():
        kind = COLLECTIVES.get(str(name).rsplit(".", 1)[-1], str(name))
        counts[kind] = counts.get(kind, 0) + count
    return flat(out if isinstance(out, (list, tuple)) else [out]), seen, counts


def result_spec(result, mesh):
    if isinstance(result, DTensor):
        return result._spec
    if not isinstance(result, torch.Tensor):
        return None
    meta = TensorMeta(result.shape, result.stride(), result.dtype)
    return DTensorSpec(mesh, (Replicate(),) * mesh.ndim, tensor_meta=meta)


def handled(call):
    """What a call does that one of PyTorch's handlers takes."""
    op, args, kwargs = arguments_of(call, real=False)
    check_on_whole_tensors(op, args, kwargs)
    targets = specs_of(tensors_of(op, args, kwargs))
    try:
        out, seen, counts = run(call)
    except Exception as error:
        return {"refused": first_sentence(error)}
    implicit, copies = [], []
    for source, target in seen:
        index = next(i for i, s in enumerate(targets) if s is not None and s == source)
        if call.get("loss_parallel") and index == 2:  # a shard of the weight, in addition
            copies.append(move(index, source, target))
            continue
        implicit.append(move(index, source, target))
        targets[index] = target
    return {
        "handler": True,
        "in": [None if t is None else text(t.placements) for t in targets],
        **outputs_of([result_spec(r, mesh_of(call["mesh"])) for r in out]),
        "implicit": [m for m in implicit if m["steps"]],
        **({"copies": copies} if copies else {}),
        "collectives": dict(sorted(counts.items())),
    }


def checked_by_run(call, expect):
    """The decision, with the error where a run fails; None where a run does not keep to it."""
    try:
        out, seen, _ = run(call)
    except Exception as error:
        if re.search(r"Could not run|not implemented for", str(error)):
            return expect  # on a CPU
        return {**expect, "raises": first_sentence(error)}
    asked = [(m["from"], m["to"]) for m in expect["implicit"]]
    done = [(m["from"], m["to"]) for m in (move(0, *pair) for pair in seen) if m["steps"]]
    found = outputs_of([result_spec(r, mesh_of(call["mesh"])) for r in out])
    same = asked == done
    for i, result in enumerate(out if expect["out"] else []):
        if isinstance(result, DTensor):
            same = same and all(found[key][i] == expect[key][i] for key in found)
    return expect if same else None


def answer(call, in_inference_mode=False):
    """What is decided. None where a run shows something else, or where the operator is composite
    and PyTorch never asks about it outside inference mode."""
    op = operator_of(call["call"])
    if call.get("loss_parallel") or op in DISPATCHER._custom_op_handlers:
        return handled(call)
    if is_composite(op) and not in_inference_mode:
        return None
    expect = decided(call)
    if is_composite(op):
        return None if "refused" in expect else expect
    if "refused" in expect or "MaskP" in str(call["in"]):  # whose masks are made by a run
        return expect
    return checked_by_run(call, expect)
