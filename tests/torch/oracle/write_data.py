#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Asks an installed PyTorch what it does and writes the answers as files that the tests read.

    pip install torch==2.15.0
    tests/torch/oracle/write_data.py tests/torch/data views.txt stacks.txt

The same PyTorch always writes the same bytes. No test runs this script. README.md in this folder
says what each file holds and which test reads it.
"""

import argparse
import importlib
import inspect
import json
import multiprocessing
import os
import sys

# The function that makes a file has the name of the file. It returns the lines of a text, and its
# docstring becomes the header, or it returns the objects that become lines of JSON.
MODULES = {
    "layouts": "index_sets.txt local_shapes.txt shard_orders.txt values.txt",
    "greedy_plans": "greedy_plans.txt costs.txt",
    "graph_plans": "graph_plans.txt",
    "placements": "texts.txt",
    "views": "views.txt stacks.txt",
    "operator_values": "operator_values.jsonl",
    "operator_calls": "operators.jsonl operators_decomposed.jsonl operators_carried.jsonl",
}
MODULE_OF = {file: module for module, files in MODULES.items() for file in files.split()}
RANKS = 16


def lines_of(name):
    import placements
    import torch

    placements.fake_ranks(RANKS)
    stem, _, kind = name.partition(".")
    make = getattr(importlib.import_module(MODULE_OF[name]), stem)
    by = f"tests/torch/oracle/write_data.py with torch {torch.__version__.split('+')[0]}"
    if kind == "txt":
        header = [f"Written by {by}; do not edit.", *inspect.getdoc(make).splitlines()]
        return [*(f"# {line}".rstrip() for line in header), *make()]
    note = "do not edit; README.md in that folder says what the fields mean"
    return [json.dumps(each, separators=(",", ":"))
            for each in ({"written_by": by, "note": note}, *make())]


def write(folder, name):
    lines = lines_of(name)
    with open(os.path.join(folder, name), "w", encoding="ascii", newline="\n") as out:
        out.writelines(line + "\n" for line in lines)
    print(f"{name}: {len(lines)} lines", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="where the files go: tests/torch/data")
    parser.add_argument("files", nargs="*", metavar="file", default=list(MODULE_OF),
                        help="(default: all) " + ", ".join(MODULE_OF))
    options = parser.parse_args()
    if unknown := set(options.files) - set(MODULE_OF):
        parser.error("no such file: " + ", ".join(sorted(unknown)))
    if "PYTHONHASHSEED" not in os.environ:  # PyTorch walks over sets of placements
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, *sys.argv])
    # Each file gets a process of its own, because PyTorch caches decisions.
    with multiprocessing.Pool(1, maxtasksperchild=1) as pool:
        for name in options.files:
            pool.apply(write, (options.folder, name))


if __name__ == "__main__":
    main()
