#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""pipeline-8x3090: ten sends of activations from GPU 0, by memcpy or by NCCL.

Usage: python3 tools/traces/pipeline_8x3090.py [nccl] [one] [two-streams] [compute]
           > traces/pipeline-8x3090[-nccl][-one][-two-streams][-compute].jsonl

From a post on the PyTorch forum about peer-to-peer sends in pipeline parallelism (8 x RTX 3090,
PCIe peer-to-peer off): tensors of 2^24 floats = 67,108,864 bytes to GPUs 2 and 3 in turn, and ten
forward passes of 39.68 ms each (396.8 ms alone). Variants: by NCCL; all to GPU 2; one stream per
destination; with the ten passes on a separate stream, which nothing waits for.

Copies to one GPU took 13.3 ms each, while copies to two GPUs in turn took 9.744 ms. The rate that
the caller reached with one GPU, without the time that a copy waits, is the cap of those copies.
"""

import sys

from trace_lines import write

SENDS, SEND_BYTES = 10, 4 * 2**24
PASSES, PASS_PS = 10, 39_680_000_000
COMPUTE_STREAM = 2
ONE_BY_COPY_BYTES_PER_S = 5_051_419_000

variant = set(sys.argv[1:])
destinations = [2] if "one" in variant else [2, 3]
by_copy = "nccl" not in variant
operations = []
for i in range(SENDS):
    destination = i % len(destinations)
    peer = destinations[destination]
    stream = destination if "two-streams" in variant else 0
    if "compute" in variant and i < PASSES:
        operations.append(
            {
                "op": "compute",
                "name": f"forward {i}",
                "ranks": "0",
                "duration_ps": PASS_PS,
                "stream": COMPUTE_STREAM,
            }
        )
    send = {
        "op": "send",
        "name": f"activations {i}",
        "rank": 0,
        "peer": peer,
        "bytes": SEND_BYTES,
        "tag": i,
        "stream": stream,
    }
    if by_copy and "one" in variant:
        send["cap_bytes_per_s"] = ONE_BY_COPY_BYTES_PER_S
    operations.append(send)
    operations.append({"op": "recv", "rank": peer, "peer": 0, "bytes": SEND_BYTES, "tag": i})

write(
    {"topology": "pcie-8x3090", "transport": "copy-engine" if by_copy else "nccl"}, operations
)
