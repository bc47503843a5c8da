#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Asks an installed PyTorch what it does and writes the answers as text that the tests read.

Needs Python 3 and torch (CPU use only); no test runs it. The same PyTorch writes the same bytes.
Everything comes from PyTorch's own functions: index sets and offsets from what
compute_local_shape_and_global_offset runs inside, shard orders from the planner's shapes, steps
from its planners, costs from redistribute_cost, values from redistribute_local_tensor, texts
from str() and repr(). Rows in which PyTorch is known to be wrong, or where reshard deliberately
does something else, are left out or marked, each with its reason in the header of the file.
"""

import argparse
import os

PARSER = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
PARSER.add_argument("folder", help="where the texts go: tests/torch/data")
FOLDER = PARSER.parse_args().folder  # before torch, which --help need not have

import torch
import torch.distributed as dist
import torch_graph
import torch_layouts
import torch_plans
import torch_texts
import torch_values
import torch_views
from torch.testing._internal.distributed.fake_pg import FakeStore

WORLD = 16


def write(folder, name, what, lines):
    with open(os.path.join(folder, name), "w", encoding="ascii", newline="\n") as out:
        out.write(
            "# Written by tools/oracles/torch_expectations.py with torch "
            f"{torch.__version__.split('+')[0]}; do not edit.\n"
        )
        for line in what.strip().splitlines():
            out.write(f"# {line.strip()}".rstrip() + "\n")
        out.writelines(line + "\n" for line in lines)
    print(f"{name}: {len(lines)} lines")


def main():
    folder = FOLDER
    dist.init_process_group("fake", rank=0, world_size=WORLD, store=FakeStore())
    write(folder, "index_sets.txt", torch_layouts.INDEX_SETS, torch_layouts.index_sets())
    write(folder, "local_shapes.txt", torch_layouts.LOCAL_SHAPES, torch_layouts.local_shapes())
    write(folder, "shard_orders.txt", torch_layouts.SHARD_ORDERS, torch_layouts.shard_orders())
    write(folder, "greedy_plans.txt", torch_plans.GREEDY_PLANS, torch_plans.greedy_plans())
    write(folder, "graph_plans.txt", torch_graph.GRAPH_PLANS, torch_graph.graph_plans())
    write(folder, "costs.txt", torch_plans.COSTS, torch_plans.cost_tables())
    write(folder, "texts.txt", torch_texts.TEXTS, torch_texts.texts())
    write(folder, "views.txt", torch_views.VIEWS, torch_views.views())
    write(folder, "stacks.txt", torch_views.STACKS, torch_views.stacks())
    dist.destroy_process_group()
    write(folder, "values.txt", torch_values.VALUES, torch_values.values())


if __name__ == "__main__":
    main()
