#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Asks an installed PyTorch what its dispatch decides for calls of operators on sharded tensors,
and writes one JSON line per call: the call, and under "expect" what was decided.

The sets "operators", "operators_decomposed" (what PyTorch has no rows for, and complex numbers) and
"operators_carried" (more of these, and what reaches dispatch in inference mode only) are what the
tests read; "fixed", "wide", "drawn" and "images" are what the first is taken from, "composite" is
what becomes of operators that PyTorch takes apart before dispatch.
Calls that reshard decides otherwise, with cause, are left out of "operators": they stand in
operators_apart.jsonl in the same folder, with what is right and why.

call    "in": the tensors in the order of the operator's arguments, null where absent, lists where
        the argument is one; "below": drawn from [0, below); "of_view": its _StridedShard was made
        by a view, and not by the user; "attr": all other arguments; "loss_parallel"
expect  "in", "out": placements, flat, null for absent ones; "out_shape", "out_dtype"; "cost_us" of
        the choice, null if infinite; "candidates" that passed the filters, "ties": how many of them
        have that cost; of a list operator their sum and most, "each" position apart; "implicit":
        the redistributions; "handler": all was taken from a run, with its collectives, "copies"
        being redistributed beside an input; "composite": asked, but PyTorch asks in inference mode
        only; "raises": decided, but the run on rank 0 fails; "run": decided, but the run says
        something else; or "refused": the first sentence of why

Every rank is a host of its own to the cost model, as on a mesh of CPUs.
Needs Python 3 and torch (CPU use only); no test runs it. The same PyTorch writes the same bytes.
"""

import argparse
import itertools
import json
import os
import sys
import zlib

PARSER = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
PARSER.add_argument("folder", help="where the files go")
PARSER.add_argument("sets", nargs="*", default=["operators"], help="operators if left out")
OPTIONS = PARSER.parse_args()  # before torch, which --help need not have
if "PYTHONHASHSEED" not in os.environ:  # PyTorch walks over sets of placements
    os.environ["PYTHONHASHSEED"] = "0"
    os.execv(sys.executable, [sys.executable] + sys.argv)

import torch
import torch.distributed as dist
import torch_answers
import torch_composite
import decisions
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch_calls_composite import composite
from operator_calls import carried, decomposed, drawn, images, short, wide
from chosen_calls import fixed
from torch_calls_more import more

WORLD = 16
DRAWN = 4000
PER_NAME = 4
APART = "operators_apart.jsonl"
NO_ROW = {"masked_select", "nonzero"}  # what sizes they give depends on values


def asked_widely():
    return itertools.chain(more(), wide())


def for_tests():
    """All of fixed, of the rest a few per operator."""
    yield from fixed()
    by_name = {}
    for call in asked_widely():
        by_name.setdefault(call["call"], []).append(call)
    for name, calls in sorted(by_name.items()):
        first, step = zlib.crc32(name.encode()), len(calls) // PER_NAME + 1
        for i in range(min(PER_NAME, len(calls))):
            yield calls[(first + i * step) % len(calls)]
    yield from itertools.islice(more(), 0, None, 3)
    yield from itertools.islice(drawn(), DRAWN)
    yield from short()
    yield from images()


SETS = {
    "operators": (for_tests, torch_answers.answer),
    "fixed": (fixed, torch_answers.answer),
    "wide": (asked_widely, torch_answers.answer),
    "drawn": (drawn, torch_answers.answer),
    "images": (images, torch_answers.answer),
    "operators_decomposed": (decomposed, torch_answers.answer),
    "operators_carried": (carried, torch_answers.answer),
    "composite": (composite, torch_composite.answer),
}


def answered(calls, how):
    for call in calls():
        try:
            yield call, how(call)
        except decisions.InvalidCall as error:
            print(f"left out: {error}", file=sys.stderr)


def apart():
    """The calls that are decided otherwise on purpose."""
    path = os.path.join(OPTIONS.folder, APART)
    if not os.path.exists(path):
        return []
    with open(path, encoding="ascii") as lines:
        answers = [json.loads(line) for line in lines]
    return [{k: v for k, v in each.items() if k not in ("expect", "why")} for each in answers]


def written(name):
    left_out = apart() if name == "operators" else []
    if name.startswith("operators"):
        made = f"tests/torch/oracle/torch_operators.py with torch {torch.__version__.split('+')[0]}"
        yield {"written_by": made, "note": "do not edit; what the fields mean: see there"}
    for call, expect in answered(*SETS[name]):
        if name == "operators_carried" and "refused" not in expect:  # in inference mode
            expect.pop("composite", None)
        if not name.startswith("operators") or not (
            {"composite", "run"} & expect.keys() or call["call"] in NO_ROW or call in left_out
        ):
            yield {**call, "expect": expect}


def main():
    dist.init_process_group("fake", rank=0, world_size=WORLD, store=FakeStore())
    for name in OPTIONS.sets:
        path = os.path.join(OPTIONS.folder, name + ".jsonl")
        with open(path + ".new", "w", encoding="ascii", newline="\n") as out:
            for line in written(name):
                out.write(json.dumps(line, separators=(",", ":")) + "\n")
        os.rename(path + ".new", path)


if __name__ == "__main__":
    main()
