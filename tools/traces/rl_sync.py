#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Weight transfers of RL jobs: all tensors of a model from the trainer's layout to the engines', as
one job on one line (--stages: a line per pipeline stage, in turn).

Usage: python3 tools/traces/rl_sync.py MODEL [--stages] > traces/MODEL-rl-sync.jsonl

Sizes are those of the published config.json files. Trainer and engines have ranks of their own, the
trainer's first. Every tensor is a DTensor on a mesh: heads and FFN rows or columns are sharded over
tensor parallelism (tp), experts, one 3-d tensor for each of a layer's three matrices, over expert
parallelism (ep), and what is not sharded is replicated. Biases and buffers are left out.

  llama3-70b     FSDP2 over 8 and tp 8, on 64 ranks, to 2 replicas of tp 8
  qwen3-235b     tp 4 and ep 8 on 64 ranks to tp 8 and ep 16 on 16
  kimi-k2        8 stages, each of tp 8 and ep 32 on 32 ranks, to 4 replicas of tp 32 and ep 32
  deepseek-v3    4 stages, each of ep 16 and 2 replicas on 32 ranks, to 16 replicas of tp 8
"""

import argparse

from trace_lines import write


class Job:
    """Collects the requests of every stage. A side is (mesh name, placements)."""

    def __init__(self):
        self.stages = {}

    def add(self, stage, name, shape, source, destination):
        request = {
            "name": name,
            "shape": shape,
            "dtype": "bf16",
            "from": source[1],
            "to": destination[1],
            "mesh": source[0],
        }
        if destination[0] != source[0]:
            request["to_mesh"] = destination[0]
        self.stages.setdefault(stage, []).append(request)


def stage_of(layer, layers, stages):
    """The first stages have one layer more than the others if they do not divide evenly."""
    short, longer = divmod(layers, stages)
    border = longer * (short + 1)
    return layer // (short + 1) if layer < border else longer + (layer - border) // short


def attention(hidden, heads, kv_heads, dim):
    """Name, shape, and whether rows ("rows"), columns ("columns") or nothing is sharded."""
    yield "self_attn.q_proj", [heads * dim, hidden], "rows"
    yield "self_attn.k_proj", [kv_heads * dim, hidden], "kv"
    yield "self_attn.v_proj", [kv_heads * dim, hidden], "kv"
    yield "self_attn.o_proj", [hidden, heads * dim], "columns"


def latent_attention(hidden, heads, nope=128, rope=64, value=128, q_rank=1536, kv_rank=512):
    yield "self_attn.q_a_proj", [q_rank, hidden], "whole"
    yield "self_attn.q_a_layernorm", [q_rank], "whole"
    yield "self_attn.q_b_proj", [heads * (nope + rope), q_rank], "rows"
    yield "self_attn.kv_a_proj_with_mqa", [kv_rank + rope, hidden], "whole"
    yield "self_attn.kv_a_layernorm", [kv_rank], "whole"
    yield "self_attn.kv_b_proj", [heads * (nope + value), kv_rank], "rows"
    yield "self_attn.o_proj", [hidden, heads * value], "columns"


def mlp(hidden, inner, prefix="mlp"):
    yield f"{prefix}.gate_proj", [inner, hidden], "rows"
    yield f"{prefix}.up_proj", [inner, hidden], "rows"
    yield f"{prefix}.down_proj", [hidden, inner], "columns"


def experts(hidden, count, inner):
    yield "mlp.gate", [count, hidden], "whole"
    yield "mlp.experts.gate_proj", [count, inner, hidden], "expert rows"
    yield "mlp.experts.up_proj", [count, inner, hidden], "expert rows"
    yield "mlp.experts.down_proj", [count, hidden, inner], "expert columns"


def norms(hidden):
    yield "input_layernorm", [hidden], "whole"
    yield "post_attention_layernorm", [hidden], "whole"


def build(layers, vocabulary, hidden, layer_tensors, stages, source_of, destination_of):
    job = Job()

    def add(stage, name, shape, kind):
        job.add(stage, name, shape, source_of(stage, kind), destination_of(kind))

    add(0, "model.embed_tokens", [vocabulary, hidden], "rows")
    for layer in range(layers):
        for name, shape, kind in layer_tensors(layer):
            add(stage_of(layer, layers, stages), f"model.layers.{layer}.{name}", shape, kind)
    add(stages - 1, "model.norm", [hidden], "whole")
    add(stages - 1, "lm_head", [vocabulary, hidden], "rows")
    return job.stages


def on(mesh, first, count):
    return {"mesh": mesh, "ranks": f"{first}-{first + count - 1}"}


def llama3_70b():
    def layer(_):
        yield from attention(8192, 64, 8, 128)
        yield from mlp(8192, 28672)
        yield from norms(8192)

    # FSDP2 cuts what tensor parallelism has cut: rows over tp first, then over fsdp.
    source = {"rows": "_S(0,8)S(0)", "kv": "_S(0,8)S(0)", "columns": "S(0)S(1)", "whole": "S(0)R"}
    destination = {"rows": "RS(0)", "kv": "RS(0)", "columns": "RS(1)", "whole": "RR"}
    meshes = {"trainer": "fsdp=8,tp=8", "engines": on("dp=2,tp=8", 64, 16)}
    stages = build(80, 128256, 8192, layer, 1, lambda _, kind: ("trainer", source[kind]),
                   lambda kind: ("engines", destination[kind]))
    return "dgx-h100:10", meshes, stages


def qwen3_235b():
    def layer(_):
        yield from attention(4096, 64, 4, 128)
        yield "self_attn.q_norm", [128], "whole"
        yield "self_attn.k_norm", [128], "whole"
        yield from experts(4096, 128, 1536)
        yield from norms(4096)

    source = {"rows": ("tp", "RS(0)"), "kv": ("tp", "RS(0)"), "columns": ("tp", "RS(1)"),
              "whole": ("tp", "RR"), "expert rows": ("ep", "RS(0)"),
              "expert columns": ("ep", "RS(0)")}
    # Each of the 4 key and value heads is on two ranks.
    destination = {"rows": ("engine_tp", "RS(0)S(0)"), "kv": ("engine_tp", "RS(0)R"),
                   "columns": ("engine_tp", "RS(1)S(1)"), "whole": ("engine_tp", "RRR"),
                   "expert rows": ("engine_ep", "S(0)"), "expert columns": ("engine_ep", "S(0)")}
    meshes = {"tp": "dp=16,tp=4", "ep": "edp=8,ep=8",
              "engine_tp": on("dp=2,kv=4,heads=2", 64, 16), "engine_ep": on("ep=16", 64, 16)}
    stages = build(94, 151936, 4096, layer, 1, lambda _, kind: source[kind],
                   lambda kind: destination[kind])
    return "dgx-h100:10", meshes, stages


def kimi_k2():
    def layer(number):
        yield from latent_attention(7168, 64)
        if number < 1:
            yield from mlp(7168, 18432)
        else:
            yield from experts(7168, 384, 2048)
            yield from mlp(7168, 2048, "mlp.shared_experts")
        yield from norms(7168)

    placements = {"rows": "RS(0)", "columns": "RS(1)", "whole": "RR"}
    meshes = {"engines": on("replica=4,tp=32", 256, 128)}
    for stage in range(8):
        meshes[f"tp{stage}"] = on("dp=4,tp=8", 32 * stage, 32)
        meshes[f"ep{stage}"] = on("ep=32", 32 * stage, 32)

    def source(stage, kind):
        if kind.startswith("expert"):
            return f"ep{stage}", "S(0)"
        return f"tp{stage}", placements[kind]

    def destination(kind):
        return "engines", "RS(0)" if kind.startswith("expert") else placements[kind]

    return "dgx-h100:48", meshes, build(61, 163840, 7168, layer, 8, source, destination)


def deepseek_v3():
    def layer(number):
        yield from latent_attention(7168, 128)
        if number < 3:
            yield from mlp(7168, 18432)
        else:
            yield from experts(7168, 256, 2048)
            yield from mlp(7168, 2048, "mlp.shared_experts")
        yield from norms(7168)

    meshes = {"engines": on("dp=16,tp=8", 128, 128)}
    for stage in range(4):
        meshes[f"ep{stage}"] = on("dp=2,ep=16", 32 * stage, 32)
    destinations = {"rows": "RS(0)", "columns": "RS(1)", "whole": "RR", "expert rows": "RS(1)",
                    "expert columns": "RS(2)"}

    def source(stage, kind):
        return f"ep{stage}", "RS(0)" if kind.startswith("expert") else "RR"

    return "gb200-nvl72:4", meshes, build(61, 129280, 7168, layer, 4, source,
                                          lambda kind: ("engines", destinations[kind]))


MODELS = {"llama3-70b": llama3_70b, "qwen3-235b": qwen3_235b, "kimi-k2": kimi_k2,
          "deepseek-v3": deepseek_v3}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--stages", action="store_true", help="a line per stage, in turn")
    options = parser.parse_args()
    topology, meshes, stages = MODELS[options.model]()
    if not options.stages:
        stages = {0: [request for stage in sorted(stages) for request in stages[stage]]}
    operations = []
    for stage in sorted(stages):
        operation = {"op": "redistribute", "requests": stages[stage]}
        if len(stages) > 1:
            operation["id"] = f"stage {stage}"
        if operations:
            operation["after"] = operations[-1]["id"]
        operations.append(operation)
    write({"topology": topology, "meshes": meshes}, operations)


if __name__ == "__main__":
    main()
