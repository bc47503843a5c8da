# SPDX-License-Identifier: BSD-3-Clause
"""Other planners' plans as lines that `reshard check` and `reshard.check` judge. A module for each
framework, which takes the framework's objects or their JSON (docs/adapters) and is a program too:
`python3 -m reshard.adapters.NAME RECORD.json [LAYOUTS] | reshard check -`.

    megatron    the send and receive operations of Megatron-Core's resharding
    mooncake    the LogicalTransferPlan of Mooncake and its placements, which are the layouts
    dcp         the read items of PyTorch's distributed checkpoint (DCP) and its metadata
    nixl        descriptor lists of NIXL, between registered regions

`copies(record)` yields the lines of copies. `layouts(record)`, where a record says what lies where,
yields the lines of tensors and buffers."""

__all__ = ["dcp", "megatron", "mooncake", "nixl"]
