#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""dtensor-p2p-sweep: every pair of two-axis placements without Partial, on four meshes.

Usage: python3 tools/traces/dtensor_p2p_sweep.py > traces/dtensor-p2p-sweep.jsonl

From the PyTorch issue that proposes P2P redistribution for DTensor: a (32, 8192, 4096) f32 tensor
(4 GiB), with placements [R, S(0), S(1), S(2)] on each of two axes of source and destination: 4^4 =
256 pairs, including the 16 that change nothing, on the meshes 2x2, 4x2, 8x2 and 4x4, so 1024
redistributions, one after another, on two nodes of 8 GPUs.
"""

from itertools import product

from trace_lines import write

MESHES = ["2x2", "4x2", "8x2", "4x4"]
PLACEMENTS = ["R", "S(0)", "S(1)", "S(2)"]
PAIRS = ["".join(pair) for pair in product(PLACEMENTS, repeat=2)]

write(
    {"topology": "dgx-h100:2", "meshes": {mesh: mesh for mesh in MESHES}},
    [
        {
            "op": "redistribute",
            "name": f"{mesh} {source}->{destination}",
            "shape": [32, 8192, 4096],
            "dtype": "f32",
            "from": source,
            "to": destination,
            "mesh": mesh,
        }
        for mesh, source, destination in product(MESHES, PAIRS, PAIRS)
    ],
)
