#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How fast `reshard digest` reads weights, next to `xxhsum` of the same file, all warm and on one
core: a checkpoint of random bytes, as ranks hold it whole, cut by rows, and cut by columns too.

    digest_rate.py [--mib 1024] [--runs 5] [--reshard PROGRAM]
"""

import argparse
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import built  # noqa: E402

WIDTH = 4096
# Rows of the tensors of a layer, in bf16.
ROWS = {"q": 4096, "k": 1024, "v": 1024, "o": 4096, "gate": 11008, "up": 11008, "down": 11008}


def write_weights(path, layers):
    header, size = {}, 0
    for layer in range(layers):
        for name, rows in ROWS.items():
            end = size + rows * WIDTH * 2
            header[f"{layer}.{name}"] = {"dtype": "BF16", "shape": [rows, WIDTH],
                                         "data_offsets": [size, end]}  # fmt: skip
            size = end
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for begin in range(0, size, 1 << 24):
            file.write(os.urandom(min(1 << 24, size - begin)))
    return header, size


def write_layouts(path, header, placements_of):
    lines = [{"reshard_check": 1}]
    lines += [{"tensor": n, "shape": e["shape"], "dtype": "bf16"} for n, e in header.items()]
    for name in header:
        lines.append({"side": "to", "tensor": name, "mesh": "8", "placements": placements_of(name)})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def timed(words):
    started = time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--reshard", default=built.RESHARD)
    arguments = parser.parse_args()
    if shutil.which("xxhsum") is None:
        print("skipped: no xxhsum (apt install xxhash)")
        return built.SKIPPED
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        weights = folder / "model.safetensors"
        layer = sum(ROWS.values()) * WIDTH * 2
        header, size = write_weights(weights, max(1, (arguments.mib << 20) // layer))
        by_columns = ("o", "down")
        kinds = {
            "whole": lambda name: "R",
            "rows": lambda name: "S(0)",
            "rows and columns": lambda name: f"S({int(name.split('.')[1] in by_columns)})",
        }
        commands = {
            "xxhsum -H3": ["xxhsum", "-H3", weights],
            "xxhsum": ["xxhsum", weights],
        }
        for kind, placements_of in kinds.items():
            path = folder / kind
            write_layouts(path, header, placements_of)
            commands[kind] = [arguments.reshard, "digest", "--layout", path, "--weights", weights]
        best = {name: min(timed(words) for _ in range(2)) for name, words in commands.items()}
        for _ in range(arguments.runs):
            for name, words in commands.items():
                best[name] = min(best[name], timed(words))
    for name, seconds in best.items():
        ratio = best["xxhsum -H3"] / seconds
        print(f"{name:18} {size / seconds / 1e9:6.2f} GB/s  {ratio:5.2f} x xxhsum -H3")
    return 0


if __name__ == "__main__":
    sys.exit(main())
