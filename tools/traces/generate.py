#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes every shipped trace, or with --check compares what the generators write with the committed
files (exit code 1 if they differ). Traces of whole models come from `reshard model`, of the build
that the environment's RESHARD_BUILD names (default build/release).

Usage: python3 tools/traces/generate.py [--check]
"""

import os
import pathlib
import subprocess
import sys

TOOLS = pathlib.Path(__file__).resolve().parent
ROOT = TOOLS.parent.parent
TRACES = ROOT / "traces"
RESHARD = pathlib.Path(os.environ.get("RESHARD_BUILD", ROOT / "build/release")) / "reshard"

# Trace: generator and its arguments.
SHIPPED = {
    "llama3-70b-fsdp-to-tp": ["llama3_70b_fsdp_to_tp.py"],
    "dtensor-p2p-sweep": ["dtensor_p2p_sweep.py"],
    "pipeline-8x3090": ["pipeline_8x3090.py"],
    "pipeline-8x3090-compute": ["pipeline_8x3090.py", "compute"],
    "pipeline-8x3090-two-streams": ["pipeline_8x3090.py", "two-streams"],
    "pipeline-8x3090-two-streams-compute": ["pipeline_8x3090.py", "two-streams", "compute"],
    "pipeline-8x3090-one": ["pipeline_8x3090.py", "one"],
    "pipeline-8x3090-one-compute": ["pipeline_8x3090.py", "one", "compute"],
    "pipeline-8x3090-nccl": ["pipeline_8x3090.py", "nccl"],
    "pipeline-8x3090-nccl-one": ["pipeline_8x3090.py", "nccl", "one"],
    "pipeline-8x3090-nccl-one-compute": ["pipeline_8x3090.py", "nccl", "one", "compute"],
    "pipeline-1f1b": ["pipeline.py"],
    "pipeline-1f1b-downstream": ["pipeline.py", "--order", "downstream"],
    "pipeline-1f1b-copy": ["pipeline.py", "--transport", "copy-engine"],
    "pipeline-gpipe": ["pipeline.py", "--schedule", "gpipe"],
    "pipeline-interleaved": ["pipeline.py", "--schedule", "interleaved"],
    "weight-sync": ["weight_sync.py"],
    "mlp-tp": ["mlp_tp.py"],
    "mlp-tp-sequence-parallel": ["mlp_tp.py", "sequence-parallel"],
}

# Trace: config in traces/models, both parallelisms, topology, other options of `reshard model`.
KIMI_K2 = ["kimi-k2", "megatron tp=8 pp=8 ep=32 dp=4 etp=1", "vllm tp=32 ep replicas=4",
           "dgx-h100:48"]
OF_MODELS = {
    "llama3-70b-rl-sync": ["llama3-70b", "fsdp2 dp=8 tp=8", "vllm tp=8 replicas=2", "dgx-h100:10"],
    "qwen3-235b-rl-sync": ["qwen3-235b", "megatron tp=4 ep=8 dp=16 etp=1", "vllm tp=8 dp=2 ep",
                           "dgx-h100:10"],
    "kimi-k2-rl-sync": KIMI_K2,
    "kimi-k2-rl-sync-stages": [*KIMI_K2, "--stages", "in-turn"],
    "deepseek-v3-rl-sync": ["deepseek-v3", "megatron pp=4 ep=16 dp=32 etp=1",
                            "vllm tp=8 replicas=16", "gb200-nvl72:4"],
}


def commands():
    for name, (script, *arguments) in SHIPPED.items():
        # -B: no bytecode next to the sources.
        yield name, script, [sys.executable, "-B", TOOLS / script, *arguments]
    for name, (config, source, destination, topology, *others) in OF_MODELS.items():
        yield name, "reshard model", [
            RESHARD, "model", TRACES / f"models/{config}.json", "--from", source,
            "--to", destination, "--topology", topology, "--planner", "p2p",
            "--emit", "trace", *others]


failures = 0
for name, generator, command in commands():
    text = subprocess.run(command, check=True, capture_output=True).stdout
    path = TRACES / f"{name}.jsonl"
    if "--check" not in sys.argv[1:]:
        path.write_bytes(text)
    elif not path.exists() or path.read_bytes() != text:
        print(f"{path.name} differs from the output of {generator}")
        failures += 1
    else:
        print(f"{path.name} is as generated")
known = SHIPPED | OF_MODELS
unknown = sorted(path.name for path in TRACES.glob("*.jsonl") if path.stem not in known)
for name in unknown:
    print(f"{name} has no generator")
sys.exit(1 if failures or unknown else 0)
