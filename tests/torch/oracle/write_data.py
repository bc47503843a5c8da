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
import graph_plans
import layouts
import greedy_plans
import torch_texts
import torch_values
import views
from torch.testing._internal.distributed.fake_pg import FakeStore

WORLD = 16


def write(folder, name, what, lines):
    with open(os.path.join(folder, name), "w", encoding="ascii", newline="\n") as out:
        out.write(
            "# Written by tests/torch/oracle/write_data.py with torch "
            f"{torch.__version__.split('+')[0]}; do not edit.\n"
        )
        for line in what.strip().splitlines():
            out.write(f"# {line.strip()}".rstrip() + "\n")
        out.writelines(line + "\n" for line in lines)
    print(f"{name}: {len(lines)} lines")


def main():
    folder = FOLDER
    dist.init_process_group("fake", rank=0, world_size=WORLD, store=FakeStore())
    write(folder, "index_sets.txt", layouts.INDEX_SETS, layouts.index_sets())
    write(folder, "local_shapes.txt", layouts.LOCAL_SHAPES, layouts.local_shapes())
    write(folder, "shard_orders.txt", layouts.SHARD_ORDERS, layouts.shard_orders())
    write(folder, "greedy_plans.txt", greedy_plans.GREEDY_PLANS, greedy_plans.greedy_plans())
    write(folder, "graph_plans.txt", graph_plans.GRAPH_PLANS, graph_plans.graph_plans())
    write(folder, "costs.txt", greedy_plans.COSTS, greedy_plans.cost_tables())
    write(folder, "texts.txt", torch_texts.TEXTS, torch_texts.texts())
    write(folder, "views.txt", views.VIEWS, views.views())
    write(folder, "stacks.txt", views.STACKS, views.stacks())
    dist.destroy_process_group()
    write(folder, "values.txt", torch_values.VALUES, torch_values.values())


if __name__ == "__main__":
    main()
