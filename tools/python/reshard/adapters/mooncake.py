# SPDX-License-Identifier: BSD-3-Clause
"""A LogicalTransferPlan of Mooncake (mooncake-reshard) as lines: its placements are the layouts,
the loops of its operations the copies. Ranks are the participants in the order of the placements,
the source's first. `overlap_offset` and `overlap_shape` describe the loops and move nothing."""

import sys

from ._mooncake_placement import FRAGMENT, PLACEMENT, add_placement
from ._records import Buffers, Record, entry_of, list_of, main, parts_of, refuse

_SIDES = {"source": "from", "target": "to"}
_OPERATION = Record("source_base_offset:whole target_base_offset:whole inner_bytes:positive "
                    "outer_loop_counts:wholes source_strides:wholes target_strides:wholes "
                    "tensor_id? overlap_offset? overlap_shape?",
                    source=FRAGMENT, target=FRAGMENT)  # fmt: skip
_PLAN = Record(
    "resource_id? revision? source_tensors? target_tensors? planning_limits? source_executors? "
    "target_executors? source_manifest?:none source_manifest_identity?:none",
    source_placement=PLACEMENT, target_placement=PLACEMENT, operations=list_of(_OPERATION),
)  # fmt: skip


def _read(plan):
    plan, tensors, buffers, ranks = _PLAN(plan, "plan"), {}, Buffers(), 0
    for side, end in _SIDES.items():
        name = f"{side}_placement"
        ranks += add_placement(plan[name], end, ranks, tensors, buffers, f"plan.{name}")
    return plan, tensors, buffers


def layouts(plan, given=()):
    """The lines of tensors and buffers; `given` ones are not needed and come first."""
    _, tensors, buffers = _read(plan)
    yield from given
    for name, tensor in tensors.items():
        yield {"tensor": name, "shape": tensor["global_shape"], "dtype": tensor["dtype"]}
    yield from buffers.lines


def copies(plan):
    """The lines of copies."""
    plan, tensors, buffers = _read(plan)
    for i, each in enumerate(plan["operations"]):
        line = {}
        for side, end in _SIDES.items():
            where = f"plan.operations[{i}].{side}"
            tensor = entry_of(tensors, each[side]["tensor_id"], where, "a tensor of the plan")
            numbers = [each[f"{side}_base_offset"], each["inner_bytes"], *each[f"{side}_strides"]]
            offset, inner, *strides = [parts_of(n, tensor["itemsize"], where) for n in numbers]
            if len(strides) != len(each["outer_loop_counts"]):
                refuse(f"{where}_strides", "one for each of outer_loop_counts", strides)
            key = end, each[side]["placement_fragment_id"]
            held = entry_of(buffers.ends, key, where, "a fragment of the placement")
            extents = [*each["outer_loop_counts"], inner]
            line[end] = {**held, "offset": offset, "extents": extents, "strides": [*strides, 1]}
        yield line


if __name__ == "__main__":
    sys.exit(main("mooncake", copies, layouts))
