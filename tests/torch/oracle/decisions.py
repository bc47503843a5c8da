# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch's dispatch decides for one call, as the plain data of a JSON line.

The operator is called on DTensors and left as soon as the sharding propagation has answered, for
its answer depends on where it is asked: a decomposition finds other candidates below dispatch than
above.
"""

import contextlib
import math
import re

import torch
from torch._subclasses.fake_tensor import DynamicOutputShapeException
from torch.distributed.tensor import DTensor
from torch.distributed.tensor import _redistribute as redistribute
from torch.distributed.tensor import _sharding_prop as propagation
from torch.distributed.tensor._dtensor_spec import DTensorSpec
from torch.distributed.tensor.debug import _clear_sharding_prop_cache
from torch.utils._dtype_abbrs import dtype_abbrs
from torch.utils._pytree import tree_leaves
from torch_arguments import arguments_of, flat, tensors_of, text_of

DISPATCHER = DTensor._op_dispatcher
PROPAGATOR = DISPATCHER.sharding_propagator


class InvalidCall(Exception):
    """The call is wrong on whole tensors already, so that no placement is to blame."""


def first_sentence(error):
    if "Sharding propagation failed" in str(error) and error.__cause__ is not None:
        error = error.__cause__  # what dispatch wraps
    text = str(error).strip().split("\n")[0]
    found = re.match(r"(.*?[.!?])(?=\s+[A-Z]|$)", text)
    kind = "" if isinstance(error, (RuntimeError, ValueError)) else type(error).__name__ + ": "
    return kind + (found.group(1) if found else text)[:300]


def steps_of(source, target):
    steps = []
    for step in redistribute._gen_transform_infos(source, target):
        before, after = step.src_dst_placements
        if before != after:
            steps.append(f"{step.mesh_dim}:{before}->{after}")
    return steps


def moved(index, source, target):
    return {
        "input": index,
        "from": text_of(source.placements),
        "to": text_of(target.placements),
        "steps": steps_of(source, target),
    }


@contextlib.contextmanager
def choices():
    """Collects what the choice was made from: per strategy its costs and the cost chosen."""
    seen, original = [], propagation._select_min_cost_strategy

    def select(strategy, op_schema=None):
        chosen = original(strategy, op_schema)
        costs = [sum(sum(c) for c in s.redistribute_cost or []) for s in strategy.strategies]
        at = next(i for i, s in enumerate(strategy.strategies) if s is chosen)
        seen.append((op_schema, (costs[at], len(costs), costs.count(costs[at]))))
        return chosen

    propagation._select_min_cost_strategy = select
    try:
        yield seen
    finally:
        propagation._select_min_cost_strategy = original


def cost_of(seen, schema):
    """The choice for the schema itself, not for the parts of its decomposition; or for its parts
    where it is a list of calls.
    """
    whole = [choice for of, choice in seen if of is schema]
    seen = whole or [choice for of, choice in seen if of is None]
    if not seen:
        return {"cost_us": 0.0, "candidates": 1, "ties": 1}
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
        "out": [s and text_of(s.placements) for s in specs],
        "out_shape": [s and list(s.shape) for s in specs],
        "out_dtype": [s and dtype_abbrs[s.tensor_meta.dtype] for s in specs],
    }


def dense(call, op, args, kwargs):
    """Is the call good on whole tensors?"""
    if op in (torch.ops.aten.equal.default, torch.ops.aten._local_scalar_dense.default):
        return
    info = DISPATCHER.unwrap_to_op_info(op, args, kwargs)
    try:
        PROPAGATOR._propagate_tensor_meta_non_cached(info.schema)
    except DynamicOutputShapeException:
        pass  # propagation does not get past this either
    except Exception as error:
        raise InvalidCall(f"{call['call']}: {first_sentence(error)}") from error


def is_composite(op):
    """Registered, but reached in inference mode only: else it is taken apart before dispatch."""
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    return torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key)


class Asked(BaseException):
    """Leaves dispatch as soon as the decision is there; no handler of PyTorch's catches it."""


def propagated(op, args, kwargs):
    """The schema that dispatch asks about and what it is told."""
    original, asked = PROPAGATOR.propagate_op_sharding_non_cached, []

    def ask(schema):
        asked.append(schema)
        asked.append(original(schema))
        raise Asked

    if is_composite(op):
        schema = DISPATCHER.unwrap_to_op_info(op, args, kwargs).schema
        return schema, original(schema)
    PROPAGATOR.propagate_op_sharding_non_cached = ask
    try:
        op(*args, **kwargs)
    except Asked:
        return asked
    finally:
        PROPAGATOR.propagate_op_sharding_non_cached = original
    raise AssertionError(f"{op} does not ask")


def decided(call):
    op, args, kwargs = arguments_of(call, real=False)
    dense(call, op, args, kwargs)
    return decision(op, args, kwargs)


def decision(op, args, kwargs):
    _clear_sharding_prop_cache()  # whose keys lack some of what the rules read
    with choices() as seen:
        try:
            schema, sharding = propagated(op, args, kwargs)
        except Exception as error:
            return {"refused": first_sentence(error)}
    sources = tensors_of(op, args, kwargs)
    targets = targets_of(op, sources, DISPATCHER.unwrap_to_op_info(op, args, kwargs), sharding)
    implicit = []
    for index, (source, target) in enumerate(zip(sources, targets)):
        if source is not None and source._spec != target:
            move = moved(index, source._spec, target)
            implicit += [move] if move["steps"] else []
    return {
        "in": [None if t is None else text_of(t.placements) for t in targets],
        **outputs_of(sharding.output_spec),
        **cost_of(seen, schema),
        "implicit": implicit,
    }


def targets_of(op, sources, info, sharding):
    """The spec that each tensor has when the local operator runs."""
    wanted = [None if s is None else s._spec for s in sources]
    if not sharding.needs_redistribute or sharding.redistribute_schema is None:
        return wanted
    schema = sharding.redistribute_schema.args_schema
    schema = tree_leaves(schema) if info.args_tree_spec is not None else list(schema)
    of = {}
    for before, after in zip(info.flat_args_schema, schema):
        if isinstance(before, DTensorSpec):
            of.setdefault(id(before), []).append(after)
    return [of[id(s)].pop(0) if s is not None and id(s) in of else s for s in wanted]
