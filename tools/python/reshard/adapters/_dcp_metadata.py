# SPDX-License-Identifier: BSD-3-Clause
"""The metadata of a distributed checkpoint of PyTorch: what tensors there are, and which rank saved
which chunks of them, as the names of the files say."""

import re

from ._records import Record, dict_of, entry_of, list_of, perhaps, refuse, tuple_of, wholes

INDEX = Record("fqn:text index? offset?", offset=perhaps(wholes))
_INFO = Record("relative_path:text offset? length? transform_descriptors?")
_TENSOR = Record(
    "size:wholes",
    properties=Record("dtype:any layout? requires_grad? memory_format? pin_memory? strides?"),
    chunks=list_of(Record("offsets:wholes sizes:wholes")),
)


def _tensor(value, where):
    """None for the metadata of what is no tensor, which has no fields."""
    return _TENSOR(value, where) if getattr(value, "__dict__", value) else None


def _stored(value, where):
    """A dict, or pairs, as JSON has no such keys."""
    pairs = value.items() if isinstance(value, dict) else value
    return list_of(tuple_of(INDEX, _INFO))(pairs, where)


METADATA = Record(
    "planner_data? storage_meta? version?",
    state_dict_metadata=dict_of(_tensor),
    storage_data=_stored,
)


def add_chunks(metadata, buffers):
    """Adds the chunks, by name and offsets."""
    files = {
        (index["fqn"], str(index.get("offset"))): info["relative_path"]
        for index, info in metadata["storage_data"]
    }
    for name, tensor in metadata["state_dict_metadata"].items():
        for chunk in tensor["chunks"] if tensor else ():
            key = name, str(chunk["offsets"])
            where = "load.metadata.storage_data"
            path = entry_of(files, key, where, "each chunk of state_dict_metadata")
            saved = re.fullmatch(r"(?:.*/)?__([0-9]{1,9})_[0-9]+\.distcp", path)
            if not saved:
                refuse(where, "files such as __0_0.distcp, which name the rank that saved", path)
            dtype, rank = str(tensor["properties"]["dtype"]), int(saved[1])
            box = chunk["offsets"], chunk["sizes"]
            buffers.add("from", rank, name, dtype, *box, key, "load.metadata.state_dict_metadata")
