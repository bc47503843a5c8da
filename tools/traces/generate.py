#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes every shipped trace, or with --check compares what the generators write with the committed
files (exit code 1 if they differ).

Usage: python3 tools/traces/generate.py [--check]
"""

import pathlib
import subprocess
import sys

TOOLS = pathlib.Path(__file__).resolve().parent
TRACES = TOOLS.parent.parent / "traces"

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
    "llama3-70b-rl-sync": ["rl_sync.py", "llama3-70b"],
    "qwen3-235b-rl-sync": ["rl_sync.py", "qwen3-235b"],
    "kimi-k2-rl-sync": ["rl_sync.py", "kimi-k2"],
    "kimi-k2-rl-sync-stages": ["rl_sync.py", "kimi-k2", "--stages"],
    "deepseek-v3-rl-sync": ["rl_sync.py", "deepseek-v3"],
    "mlp-tp": ["mlp_tp.py"],
    "mlp-tp-sequence-parallel": ["mlp_tp.py", "sequence-parallel"],
}

failures = 0
for name, (script, *arguments) in SHIPPED.items():
    # -B: no bytecode next to the sources.
    text = subprocess.run(
        [sys.executable, "-B", str(TOOLS / script), *arguments], check=True, capture_output=True
    ).stdout
    path = TRACES / f"{name}.jsonl"
    if "--check" not in sys.argv[1:]:
        path.write_bytes(text)
    elif not path.exists() or path.read_bytes() != text:
        print(f"{path.name} differs from the output of tools/traces/{script}")
        failures += 1
    else:
        print(f"{path.name} is as generated")
unknown = sorted(path.name for path in TRACES.glob("*.jsonl") if path.stem not in SHIPPED)
for name in unknown:
    print(f"{name} has no generator")
sys.exit(1 if failures or unknown else 0)
