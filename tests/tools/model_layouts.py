#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`reshard model` from drawn config.json files: which element lies where on each rank.

    model_layouts.py --reshard PROGRAM [--seeds 1-40] [-v]

The numbers of every buffer are worked out here, with lists cut as the frameworks cut tensors; the
program has a config.json and two parallelisms.
"""

import argparse
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import built  # noqa: E402
from drawn_models import numbers_in  # noqa: E402
from models import program  # noqa: E402
from models.configs import ConfiguredJob  # noqa: E402
from models.program import Fault  # noqa: E402


def short(name):
    """A name of the program as the numbers have it."""
    head, _, rest = name.partition(".")
    if head == "model":
        return short(rest)
    if name.endswith("_flat_param"):
        return (name[:-len("_flat_param")] or "root.") + "flat"
    if head.startswith("model"):  # a chunk of a stage
        return f"chunk{head[5:]}.{rest}" if rest.startswith("decoder.layers") else rest
    return name


def check(path, job):
    config, words = job.config(), job.words()
    path.write_text(json.dumps(config))
    printed = program.run(job.program, "model", path, "--list", "--json", *words).stdout
    parts = json.loads(printed)["parts"]
    for part in parts:
        part["tensor"], part["buffer"] = short(part["tensor"]), short(part["buffer"])
    buffers = {side: {(rank, short(name)): numbers
                      for (rank, name), numbers in job.buffers(which).items()}
               for which, side in zip(job.sides(), ("from", "to"))}
    flat = {side: {key: program.flat(each) for key, each in of.items()}
            for side, of in buffers.items()}
    program.compare_parts(parts, job.model, flat)
    return len(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reshard", default=built.RESHARD, type=pathlib.Path)
    parser.add_argument("--seeds", default="1-40", type=numbers_in, metavar="FIRST-LAST")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line for each model")
    given = parser.parse_args()
    failed = parts = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in given.seeds:
            job = ConfiguredJob(seed)
            job.program = given.reshard
            fault = count = 0
            try:
                count = check(pathlib.Path(folder) / "config.json", job)
            except Fault as found:
                fault = found
            parts, failed = parts + count, failed + bool(fault)
            if fault or given.verbose:
                print(f"{'FAILED ' if fault else ''}seed {seed}: {job.words()}: {fault or count}")
                if fault:
                    print(json.dumps(job.config()))
    print(f"model_layouts: {len(given.seeds)} models, {parts} parts, {failed} failed")
    return 1 if failed or not parts else 0


if __name__ == "__main__":
    sys.exit(main())
