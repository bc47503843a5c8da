#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Records every model of tests/torch/models into traces/torch, with PyTorch's choices, and the
collectives that it ran into traces/torch/expected_counts.json; with --check, compares instead (exit
code 1 if they differ). Needs PyTorch 2.15.

Usage: python3 tests/torch/record_models.py [--check] [NAME...]
"""

import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TRACES = ROOT / "traces" / "torch"
KINDS = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]

# Trace: script and its arguments.
MODELS = {
    "mlp-tp": ["mlp.py"],
    "mlp-sequence-parallel": ["mlp.py", "sequence-parallel"],
    "attention-tp": ["attention.py", "local"],
    "attention-tp-dtensor": ["attention.py", "dtensor"],
    "layer": ["layer.py"],
    "layer-rms": ["layer.py", "rms"],
    "layer-dtensor": ["layer.py", "dtensor"],
    "layer-step": ["layer.py", "step"],
    "placed-layer-R": ["placed_layer.py", "R"],
    "placed-layer-S1": ["placed_layer.py", "S1"],
    "placed-layer-S0R": ["placed_layer.py", "S0,R"],
    "placed-layer-S0S1": ["placed_layer.py", "S0,S1"],
    "placed-layer-R-rms": ["placed_layer.py", "R", "rms"],
    "head": ["head.py"],
    "head-loss-parallel": ["head.py", "loss-parallel"],
    "embedding-R": ["embedding.py", "R"],
    "embedding-S1": ["embedding.py", "S1"],
    "fsdp2": ["fsdp.py", "fsdp"],
    "hsdp": ["fsdp.py", "hsdp"],
    "fsdp2-tp": ["fsdp.py", "tp"],
    "fsdp-gathered": ["fsdp_by_hand.py", "gathered"],
    "fsdp-dispatched": ["fsdp_by_hand.py", "dispatched"],
    "optimizer-4": ["optimizer.py", "4"],
    "optimizer-2x2": ["optimizer.py", "2x2"],
    "optimizer-inf": ["optimizer.py", "2x2", "inf"],
    "batch-norm": ["batch_norm.py"],
    "einsum-scores": ["einsum.py", "scores"],
    "einsum-features": ["einsum.py", "features"],
}


def record(name, folder):
    """The trace, and its counts of the kinds of collectives that traces have."""
    script, *arguments = MODELS[name]
    trace, counts = folder / f"{name}.jsonl", folder / "counts.json"
    command = [sys.executable, "-W", "ignore", "-B", str(ROOT / "tools/traces/record_torch.py")]
    command += ["--expect", "--counts", str(counts), "--output", str(trace)]
    command += [str(HERE / "models" / script), *arguments]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{name}: {run.stderr}")
    counted = json.loads(counts.read_text())
    return trace.read_text(), {
        each: {kind: kinds[kind] for kind in KINDS if kind in kinds}
        for each, kinds in counted.items()
    }


def main():
    if "--help" in sys.argv[1:]:
        print(__doc__)
        return
    check = "--check" in sys.argv[1:]
    names = [name for name in sys.argv[1:] if name != "--check"] or list(MODELS)
    expected = TRACES / "expected_counts.json"
    known = json.loads(expected.read_text()) if expected.exists() else {}
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            text, counts = record(name, pathlib.Path(folder))
            path = TRACES / f"{name}.jsonl"
            if not check:
                path.write_text(text)
                known[name] = counts
            elif not path.exists() or path.read_text() != text or known.get(name) != counts:
                print(f"{name} is not what {MODELS[name][0]} records")
                failures += 1
            print(name, counts)
    if not check:
        lines = [f"{json.dumps(name)}: {json.dumps(known[name])}" for name in MODELS]
        expected.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
