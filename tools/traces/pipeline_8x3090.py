#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""pipeline-8x3090: ten forward passes and ten sends of activations from GPU 0 to GPUs 2 and 3 in
turn, as memcpy.

Usage: python3 tools/traces/pipeline_8x3090.py [two-streams] [compute]
           > traces/pipeline-8x3090[-two-streams][-compute].jsonl

From a post on the PyTorch forum about peer-to-peer sends in pipeline parallelism (8 x RTX 3090,
PCIe peer-to-peer off): tensors of 2^24 floats = 67,108,864 bytes, ten forward passes of 39.68 ms
each (396.8 ms alone). Measured there: 97.441 ms for the ten copies on one stream, 75.075 ms on two
streams, one per destination. The variants: all sends on one stream of GPU 0, or one stream per
destination; without compute, or with the ten passes on a stream of their own, which nothing waits
for.
"""

import sys

from trace_lines import write

SENDS, SEND_BYTES, DESTINATIONS = 10, 4 * 2**24, [2, 3]
PASSES, PASS_PS = 10, 39_680_000_000
COMPUTE_STREAM = 2

two_streams = "two-streams" in sys.argv[1:]
operations = []
for i in range(SENDS):
    destination = i % len(DESTINATIONS)
    peer = DESTINATIONS[destination]
    stream = destination if two_streams else 0
    if "compute" in sys.argv[1:] and i < PASSES:
        operations.append(
            {
                "op": "compute",
                "name": f"forward {i}",
                "ranks": "0",
                "duration_ps": PASS_PS,
                "stream": COMPUTE_STREAM,
            }
        )
    operations.append(
        {
            "op": "send",
            "name": f"activations {i}",
            "rank": 0,
            "peer": peer,
            "bytes": SEND_BYTES,
            "tag": i,
            "stream": stream,
        }
    )
    operations.append({"op": "recv", "rank": peer, "peer": 0, "bytes": SEND_BYTES, "tag": i})

write({"topology": "pcie-8x3090"}, operations)
