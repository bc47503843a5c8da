# SPDX-License-Identifier: BSD-3-Clause
"""The placement manifests of Mooncake, as `weight_placement_to_json` writes them or as objects:
what tensors there are, and which box of which one each participant has."""

from ._records import Record, entry_of, list_of, refuse

_ID = "resource_id? revision? weight_generation? placement_set_id? topology_id? "
_TOPOLOGY = Record(
    "tp_size? pp_size? ep_size? dp_size? cp_size? topology_id?",
    participants=list_of(Record("participant_id:text rank?")),
)
_TENSOR = Record(
    "tensor_id:text global_shape:wholes dtype:text itemsize:positive layout_fingerprint:text "
    "shard_dims? parallel_axes? layer_id? expert_id?"
)
FRAGMENT = Record(
    "placement_fragment_id:text tensor_id:text global_offset:wholes local_shape:wholes "
    "nbytes? rank? aliases? pipeline_stage_id?"
)
PLACEMENT = Record(
    _ID + "resource_kind? placement_id? fragments?",
    topology=_TOPOLOGY,
    tensors=list_of(_TENSOR),
    parts=list_of(
        Record(_ID + "participant_id:text rank? tensors?", fragments=list_of(FRAGMENT))
    ),
)


def add_placement(placement, side, first_rank, tensors, buffers, where):
    """Adds a placement, its tensors by their ids and its fragments by theirs, and returns how many
    ranks it has: its participants, in order."""
    for tensor in placement["tensors"]:
        known = tensors.setdefault(tensor["tensor_id"], tensor)
        if known != tensor:
            refuse(f"{where}.tensors", known, tensor)
    people = [each["participant_id"] for each in placement["topology"]["participants"]]
    ranks = {name: first_rank + i for i, name in enumerate(people)}
    if len(ranks) < len(people):
        refuse(f"{where}.topology", "each participant once", people)
    parts = f"{where}.parts"
    for part in placement["parts"]:
        rank = entry_of(ranks, part["participant_id"], parts, "one of its participants")
        for fragment in part["fragments"]:
            tensor = entry_of(tensors, fragment["tensor_id"], parts, "one of its tensors")
            box = fragment["global_offset"], fragment["local_shape"]
            key = side, fragment["placement_fragment_id"]
            name, dtype = tensor["tensor_id"], tensor["dtype"]
            buffers.add(side, rank, name, dtype, *box, key, parts)
    return len(people)
