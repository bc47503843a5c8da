#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Copies of drawn models with one mistake of a kind that users make: `check` must find it, and name
all elements that are wrong, in boxes without others unless they arrive in another order, with what
arrives there and from where. Of those that `looks like` has words for, it must say them of nine in
ten.

    planted_mistakes.py --reshard PROGRAM [--seeds 1-4] [--draw 200] [--right 20] [--keep FOLDER]

Every seed plants each kind of mistake once; --draw takes so many of all kinds by chance instead,
each of another job. --right: so many jobs without one, in which nothing may be found. Copies and
what they do are worked out here, with nothing of the program.
"""

import argparse
import collections
import pathlib
import random
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import built  # noqa: E402
from drawn_models import numbers_in  # noqa: E402
from models.copies import Verdict, wrongs  # noqa: E402
from models.draw import Job  # noqa: E402
from models.file_lines import Lines  # noqa: E402
from models.mistakes import ALWAYS_NAMED, MISTAKES, Case  # noqa: E402

TRIES = 400


def case_of(seed, number, mistake):
    """The first drawn job with that mistake: (case, copies, what they do wrong)."""
    name, possible, plant, _ = mistake
    for i in range(TRIES):
        job = Job(f"{seed}/{number}/{i}")
        job.back = False
        case = Case(job, random.Random(f"{seed}/{name}/{i}"))
        if not possible(case):
            continue
        copies = plant(case.prepare())
        wrong = copies and wrongs(copies, case.source, case.target)
        if wrong:
            return case, copies, wrong
    return None


def is_named(words, said):
    """Whether one of the words is in what is said; None: the mistake has no name."""
    return bool(words) and any(word in each for word in words.split("|") for each in said)


def planted(given):
    """(seed, mistake, case)."""
    if not given.draw:
        for seed in given.seeds:
            for number, mistake in enumerate(MISTAKES):
                yield seed, mistake, case_of(seed, number, mistake)
        return
    first, rng = min(given.seeds), random.Random(f"draw {min(given.seeds)}")
    for i in range(given.draw):
        number = rng.randrange(len(MISTAKES))
        yield first + i, MISTAKES[number], case_of(f"draw {first + i}", number, MISTAKES[number])


def plant_all(given, folder, tally):
    failed = 0
    for seed, mistake, found in planted(given):
        if found is None:
            continue
        case, copies, wrong = found
        path = folder / f"{mistake[0].replace(' ', '-').replace('|', '')}-{seed}.copies"
        verdict = Verdict(given.reshard, path, Lines(case.job).text(), copies)
        problem = verdict.problem(case.model, wrong)
        named = is_named(mistake[3], verdict.mistakes())
        if not problem and not named and mistake[0] in ALWAYS_NAMED:
            problem = f"no '{mistake[3]}' in {verdict.mistakes()}"
        row = tally[mistake[0]]
        row["planted"] += 1
        row["found"] += verdict.code in (1, 2)
        row["named"] += not problem
        row["exact"] += not problem and verdict.exact(wrong)
        row["known"] += bool(mistake[3])
        row["pattern"] += named
        row["some pattern"] += bool(verdict.mistakes())
        failed += bool(problem)
        if problem:
            print(f"FAILED seed {seed}, {mistake[0]}: {problem}")
        if given.verbose:
            print(f"seed {seed}, {mistake[0]}: {len(wrong)} wrong, {len(verdict.findings)} "
                  f"findings, {verdict.mistakes()[:3]} {path.name}")
    return failed


def right_jobs(given, folder):
    failed = 0
    for number in range(given.right):
        job = Job(f"right/{number}")
        job.back = False
        case = Case(job, random.Random(number)).prepare()
        path = folder / f"right-{number}.copies"
        verdict = Verdict(given.reshard, path, Lines(job).text(), case.right)
        failed += verdict.code != 0
        if verdict.code != 0:
            print(f"FAILED right job {number}: exit {verdict.code}: {verdict.said[-300:]}")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reshard", default=built.RESHARD, type=pathlib.Path)
    parser.add_argument("--seeds", default="1-4", type=numbers_in, metavar="FIRST-LAST")
    parser.add_argument("--draw", default=0, type=int, metavar="MISTAKES")
    parser.add_argument("--right", default=20, type=int, metavar="JOBS")
    parser.add_argument("--keep", type=pathlib.Path, help="leave the files of the jobs there")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line for each mistake")
    given = parser.parse_args()
    tally = collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or pathlib.Path(temporary)
        failed = plant_all(given, folder, tally) + right_jobs(given, folder)
    for name, row in tally.items() if given.verbose else []:
        print(f"{name:48} " + " ".join(f"{row[key]:4}" for key in (
            "planted", "found", "named", "exact", "pattern", "some pattern")))
    count = {key: sum(row[key] for row in tally.values())
             for key in ("planted", "named", "known", "pattern")}
    few = 10 * count["pattern"] < 9 * count["known"]
    print(f"planted_mistakes: {count['planted']} mistakes of {len(tally)} kinds, {count['named']} "
          f"with tensor and range; {count['pattern']} of {count['known']} by their pattern; "
          f"{given.right} jobs without one; {failed} failed")
    return 1 if failed or few or not count["planted"] else 0


if __name__ == "__main__":
    sys.exit(main())
