# SPDX-License-Identifier: BSD-3-Clause
"""The read items of PyTorch's distributed checkpoint (torch.distributed.checkpoint, DCP) as lines
of copies, from the ranks that saved the chunks to those that load them. The record has `metadata`,
that of the checkpoint, and `plans`, the LoadPlans of all ranks. Items of bytes are passed over."""

import sys

from ._dcp_metadata import INDEX, METADATA, add_chunks
from ._records import Buffers, Record, box_of, by_rank, entry_of, list_of, main, refuse

_ITEM = Record("type:any dest_offsets:wholes storage_offsets:wholes lengths:wholes",
               dest_index=INDEX, storage_index=INDEX)  # fmt: skip
_PLANS = by_rank(Record("storage_data? planner_data?", items=list_of(_ITEM)))
_LOAD = Record(metadata=METADATA, plans=_PLANS)


def _read(load):
    load, buffers = _LOAD(load, "load"), Buffers()
    add_chunks(load["metadata"], buffers)
    return load, buffers


def layouts(load, given=()):
    """The given lines, which say what the loading ranks hold, after those of the tensors if they
    have none, and before those of the saved chunks if they do not say what the savers hold."""
    load, buffers = _read(load)
    if all("side" in line for line in given):
        for name, each in load["metadata"]["state_dict_metadata"].items():
            if each:
                dtype = str(each["properties"]["dtype"])
                yield {"tensor": name, "shape": each["size"], "dtype": dtype}
    yield from given
    if not any(line.get("side") in ("from", "both") for line in given):
        yield from buffers.lines


def copies(load):
    """The lines of copies."""
    load, buffers = _read(load)
    for rank, plan in load["plans"].items():
        for i, each in enumerate(plan["items"]):
            where = f"load.plans[{rank}].items[{i}]"
            kind = str(getattr(each["type"], "name", each["type"])).rsplit(".", 1)[-1]
            if kind not in ("TENSOR", "BYTE_IO"):
                refuse(f"{where}.type", "TENSOR or BYTE_IO", each["type"])
            if kind == "BYTE_IO":
                continue
            stored, there, lengths = each["storage_index"], each["dest_index"], each["lengths"]
            key = stored["fqn"], str(stored.get("offset"))
            held = entry_of(buffers.ends, key, f"{where}.storage_index", "a chunk of the metadata")
            origin = there.get("offset")
            if origin is None or len(origin) != len(each["dest_offsets"]):
                refuse(f"{where}.dest_index", "as many offsets as dest_offsets", there)
            start = [a + b for a, b in zip(origin, each["dest_offsets"])]
            to = {"rank": rank, "tensor": there["fqn"], **box_of(start, lengths, where)}
            yield {"from": {**held, **box_of(each["storage_offsets"], lengths, where)}, "to": to}


if __name__ == "__main__":
    sys.exit(main("dcp", copies, layouts))
