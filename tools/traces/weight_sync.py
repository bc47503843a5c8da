#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""weight-sync: sends a model's weights from training to the engines that sample from it, as RL
frameworks do: gathered over tensor parallelism, then broadcast.

Usage: python3 tools/traces/weight_sync.py > traces/weight-sync.jsonl

Llama-3-8B's 32 layers in bf16 (config.json of meta-llama/Meta-Llama-3-8B: hidden 4096, FFN 14336,
32 query and 8 key/value heads of 128), 436.2 MB each; embeddings are left out. Training has tp = 4
and pp = 2 on 8 GPUs, the engines another 8. For each layer the first rank of its stage gathers the
other ranks' parts and broadcasts the whole layer to all engine ranks, over one communicator per
stage, of that rank and the engines: slime's update_weight_from_distributed with its groups
`slime-pp_0`, `slime-pp_1` (github.com/THUDM/slime); verl and OpenRLHF do the same. Layers go one
after another; a layer is gathered while the one before it is broadcast.
"""

from trace_lines import write

HIDDEN, FFN, LAYERS, KV = 4096, 14336, 32, 8 * 128
TP, PP, ENGINES = 4, 2, 8
LAYER_BYTES = 2 * (2 * HIDDEN * HIDDEN + 2 * KV * HIDDEN + 3 * FFN * HIDDEN)

engines = list(range(TP * PP, TP * PP + ENGINES))
comms = {}
operations = []
for stage in range(PP):
    ranks = list(range(stage * TP, (stage + 1) * TP))
    comms[f"tp_{stage}"] = ranks
    comms[f"slime-pp_{stage}"] = [ranks[0], *engines]

for layer in range(LAYERS):
    stage = layer * PP // LAYERS
    root = stage * TP
    collective = {"op": "collective", "root": root}
    operations.append(
        {
            **collective,
            "id": f"gather.{layer}",
            "name": f"layers.{layer} gathered",
            "kind": "gather",
            "comm": f"tp_{stage}",
            "ranks": comms[f"tp_{stage}"],
            "bytes": LAYER_BYTES // TP,
            "stream": 0,
        }
    )
    operations.append(
        {
            **collective,
            "after": [f"gather.{layer}"],
            "name": f"layers.{layer} broadcast",
            "kind": "broadcast",
            "comm": f"slime-pp_{stage}",
            "ranks": comms[f"slime-pp_{stage}"],
            "bytes": LAYER_BYTES,
            "stream": 1,
        }
    )

write({"topology": "dgx-h100:2", "comms": comms}, operations)
