#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Whole small models, drawn from a seed, on the ranks of training (Megatron-Core, FSDP2, HSDP,
FSDP1, ZeRO-3) and of serving (vLLM, SGLang).

    drawn_models.py --reshard PROGRAM [--seeds 1-40] [--keep FOLDER] [-v]

Where every element lies on both sides is worked out here, with lists cut as the frameworks cut
tensors, and nothing of the program. Its `layout` of the same job in its own words must agree
element for element; what `plan` makes of it must be proved by `check`, and applied to the numbers
must give the destination.
"""

import argparse
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import built  # noqa: E402
from models.draw import Job  # noqa: E402
from models.file_lines import Lines  # noqa: E402
from models.program import Fault, check_job  # noqa: E402


def numbers_in(text):
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def fault_of(program, seed, folder):
    """(job, lines, copies, what is wrong)."""
    job = Job(seed)
    lines = Lines(job)
    # Ranges of bytes say nothing where a side converts.
    emit = "descriptors" if seed % 2 and not job.converted else "copies"
    try:
        path = folder / f"{seed}.copies"
        return job, lines, check_job(program, job, lines, path, emit), ""
    except Fault as fault:
        return job, lines, 0, str(fault)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reshard", default=built.RESHARD, type=pathlib.Path)
    parser.add_argument("--seeds", default="1-40", type=numbers_in, metavar="FIRST-LAST")
    parser.add_argument("--keep", type=pathlib.Path, help="leave the files of the jobs there")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line for each model")
    given = parser.parse_args()
    failed = copies = elements = by_parts = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or pathlib.Path(temporary)
        for seed in given.seeds:
            job, lines, count, fault = fault_of(given.reshard, seed, folder)
            said = f"seed {seed}: {job.sides()[0]} to {job.sides()[1]}: {job}"
            copies, elements = copies + count, elements + job.model.elements
            by_parts += bool(lines.by_parts)
            failed += bool(fault)
            if fault:
                print(f"FAILED {said}: {fault}")
            elif given.verbose:
                print(f"{said}: {count} copies")
    print(f"drawn_models: {len(given.seeds)} models of {elements} elements, {copies} copies, "
          f"{by_parts} in need of parts, {failed} failed")
    return 1 if failed or not copies else 0


if __name__ == "__main__":
    sys.exit(main())
