#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""llama3-70b-fsdp-to-tp: moves all weights of Llama-3-70B from FSDP2 + tensor-parallel training to
tensor-parallel inference on the same 64 GPUs.

Usage: python3 tools/traces/llama3_70b_fsdp_to_tp.py > traces/llama3-70b-fsdp-to-tp.jsonl

Model: the published configuration of Meta-Llama-3-70B (its config.json): hidden 8192, 80 layers, 64
heads of 128, 8 KV heads, FFN 28672, vocabulary 128256, bf16, embedding and head not tied. Weights
are [out, in], as in torch.nn.Linear: 1 + 80 x 9 + 2 = 723 tensors, 70.55e9 parameters, 141.1 GB.

Training: mesh dp=8,tp=8, one node of 8 GPUs per tensor-parallel group. FSDP2 shards dim 0 of each
tensor-parallel shard (torch/distributed/fsdp, fully_shard), so the placements are

  _S(0,8)S(0)  column-parallel weights (tp on dim 0; q, k, v, gate, up; embedding and head by
               vocabulary)
  S(0)S(1)     row-parallel weights (tp on dim 1; o, down)
  S(0)R        norms (not sharded by tp)

Inference: every data-parallel replica holds the whole tensor-parallel shard: R over dp, tp
unchanged. One tensor after another, in the order of the module.
"""

from trace_lines import write

LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD_DIM, FFN, VOCABULARY = 80, 8192, 64, 8, 128, 28672, 128256

COLUMN = ("_S(0,8)S(0)", "RS(0)")
ROW = ("S(0)S(1)", "RS(1)")
NORM = ("S(0)R", "RR")

LAYER = [
    ("input_layernorm", [HIDDEN], NORM),
    ("self_attn.q_proj", [HEADS * HEAD_DIM, HIDDEN], COLUMN),
    ("self_attn.k_proj", [KV_HEADS * HEAD_DIM, HIDDEN], COLUMN),
    ("self_attn.v_proj", [KV_HEADS * HEAD_DIM, HIDDEN], COLUMN),
    ("self_attn.o_proj", [HIDDEN, HEADS * HEAD_DIM], ROW),
    ("post_attention_layernorm", [HIDDEN], NORM),
    ("mlp.gate_proj", [FFN, HIDDEN], COLUMN),
    ("mlp.up_proj", [FFN, HIDDEN], COLUMN),
    ("mlp.down_proj", [HIDDEN, FFN], ROW),
]


def tensors():
    yield "model.embed_tokens", [VOCABULARY, HIDDEN], COLUMN
    for layer in range(LAYERS):
        for name, shape, side in LAYER:
            yield f"model.layers.{layer}.{name}", shape, side
    yield "model.norm", [HIDDEN], NORM
    yield "lm_head", [VOCABULARY, HIDDEN], COLUMN


write(
    {"topology": "dgx-h100:8", "meshes": {"train": "dp=8,tp=8"}},
    [
        {
            "op": "redistribute",
            "name": name + ".weight",
            "shape": shape,
            "dtype": "bf16",
            "from": side[0],
            "to": side[1],
            "mesh": "train",
        }
        for name, shape, side in tensors()
    ],
)
