# SPDX-License-Identifier: BSD-3-Clause
"""Limits of memory, and an order of a job's requests: plans and errors are those of the command
line and of files."""

import array
import json
import os
import tempfile
import unittest

import reshard
from test_execute import run_all

# 8 MiB on each of 4 ranks, twice, before and after.
LARGE = [
    {"shape": [4096, 4096], "dtype": "bf16", "from": "S(0)", "to": "S(1)", "mesh": "4"},
    {"shape": [4096, 4096], "dtype": "bf16", "from": "S(1)", "to": "S(0)", "mesh": "4"},
]
# Each rank packs 16x16 elements for each of three others; they arrive as whole rows.
COLUMNS = ((64, 64), "f32", 4, "S(0)", "S(1)")
# Each rank folds its own addend and copies of three others, 16x64 elements each.
SUMS = ((64, 64), "f32", 4, "P(sum)", "S(0)")
GATHER = {"shape": [64], "dtype": "f32", "from": "S(0)", "to": "R", "mesh": "4"}
SCATTER = {**GATHER, "from": "R", "to": "S(0)", "to_mesh": "2"}


def with_id(value):
    return {**GATHER, "id": value}


def after(ids):
    return {**GATHER, "after": ids}


class JobFile:
    """The path of a file of these requests."""

    def __init__(self, requests):
        self.text = "".join(json.dumps(each) + "\n" for each in requests)

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        path = os.path.join(self.folder.name, "job.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.text)
        return path

    def __exit__(self, *error):
        self.folder.cleanup()


class Refusals(unittest.TestCase):
    def refused(self, said, call, *arguments, **options):
        with self.assertRaises(reshard.InputError) as caught:
            call(*arguments, **options)
        self.assertEqual(str(caught.exception)[: len(said)], said)


class MemoryTest(Refusals):
    def test_limits_shape_plans_as_on_the_command_line(self):
        with JobFile(LARGE) as path:
            for options, words in (
                ({}, ()),
                ({"extra_memory": 6 << 20}, ("--extra-memory", "6MiB")),
                (
                    {"memory_limit": 26 << 20, "free_source": True},
                    ("--memory-limit", "26MiB", "--free-source"),
                ),
            ):
                expected = reshard.command(
                    "plan", "--requests", path, "--planner", "p2p", *words, "--emit", "plan"
                )
                for job in (LARGE, path):
                    plan = reshard.plan_job(job, planner="p2p", **options)
                    self.assertEqual(plan.to_text(), expected)
                self.assertEqual("sources freed" in expected, "free_source" in options)

    def test_what_a_plan_needs(self):
        plan = reshard.plan(*COLUMNS, planner="p2p")
        self.assertEqual(plan.extra_bytes_max, 3 * 16 * 16 * 4)
        self.assertEqual(plan.needed_bytes_max, plan.peak_bytes_max + plan.extra_bytes_max)
        half = reshard.plan(*COLUMNS, planner="p2p", extra_memory=plan.extra_bytes_max // 2)
        self.assertEqual(half.extra_bytes_max, plan.extra_bytes_max // 2)
        self.assertEqual(half.bytes_of(0), plan.bytes_of(0))

    def test_nothing_beyond_source_and_destination_is_a_limit(self):
        plan = reshard.plan(*COLUMNS, planner="p2p", extra_memory=0)
        self.assertEqual(plan.extra_bytes_max, 0)
        self.assertIsNot(plan, reshard.plan(*COLUMNS, planner="p2p"))
        self.assertIs(
            reshard.plan(*COLUMNS, planner="p2p", extra_memory=None),
            reshard.plan(*COLUMNS, planner="p2p"),
        )

    def test_values_are_the_same_within_limits(self):
        request = ((8, 8), "f32", 4, "S(0)", "S(1)")
        sources = [array.array("f", range(16 * rank, 16 * rank + 16)) for rank in range(4)]
        expected = [
            [8 * row + column for row in range(8) for column in (2 * rank, 2 * rank + 1)]
            for rank in range(4)
        ]
        for options in ({"extra_memory": 0}, {"free_source": True, "memory_limit": 136}):
            plan = reshard.plan(*request, planner="p2p", **options)
            for run in (reshard.execute_all, run_all):
                destinations = [array.array("f", [0] * 16) for _ in range(4)]
                run(plan, sources, destinations)
                self.assertEqual([list(each) for each in destinations], expected)
            self.assertEqual(list(sources[3]), list(range(48, 64)))

    def test_other_functions_have_the_same_limits(self):
        found = reshard.simulate(*COLUMNS, planner="p2p", extra_memory=0, free_source=True)
        plan = reshard.plan(*COLUMNS, planner="p2p", extra_memory=0, free_source=True)
        self.assertEqual(found["extra_bytes_max"], 0)
        self.assertEqual(found["time_ps"], plan.time_ps)
        self.assertIn("sources freed", plan.to_text())
        refused = reshard.sweep(
            (64, 64), 4, "f32", placements="P(sum),S(0)", planner="p2p", extra_memory=0
        )["summary"]
        self.assertEqual([row["refused"] for row in refused], [1])

    def test_a_limit_that_cannot_be_met_is_refused_with_one_that_works(self):
        said = "extra memory: expected at least 12288 bytes per rank, which planner p2p needs, "
        self.refused(said, reshard.plan, *SUMS, planner="p2p", extra_memory=0)
        self.refused(said, reshard.simulate, *SUMS, planner="p2p", extra_memory=12287)
        plan = reshard.plan(*SUMS, planner="p2p", extra_memory=12288)
        self.assertEqual(plan.extra_bytes_max, 12288)
        said = "memory limit: expected at least 33566720 bytes per rank, which planner p2p needs"
        self.refused(said, reshard.plan_job, LARGE, planner="p2p", memory_limit=26 << 20)

    def test_wrong_limits(self):
        for limit in (-1, 1 << 63, True, 1e9, "2GiB"):
            for call, given in ((reshard.plan, SUMS), (reshard.plan_job, (LARGE,))):
                self.refused("extra_memory: expected a", call, *given, extra_memory=limit)
        self.assertEqual(
            reshard.plan(*SUMS, extra_memory=(1 << 63) - 1).to_text(), reshard.plan(*SUMS).to_text()
        )
        for free in (1, 0, None, "yes"):
            said = f"free_source: expected True or False, found {free!r}"
            self.refused(said, reshard.plan, *SUMS, free_source=free)
            self.refused(said, reshard.plan_job, LARGE, free_source=free)
        for name in ("extra_memory", "free_source"):
            said = f"requests[0].{name}: expected it for the whole job, found it in a request"
            self.refused(said, reshard.plan_job, [{**GATHER, name: 0}])
        with self.assertRaises(TypeError):
            reshard.plan_job(LARGE, memroy_limit=1)


class OrderTest(Refusals):
    def test_an_order_makes_the_plan_that_a_file_with_it_makes(self):
        job = [
            {**SCATTER, "after": ["7", "b"]},
            with_id(7),
            {**with_id("b"), "after": 7},
        ]
        with JobFile(job) as path:
            of_file = reshard.plan_job(path)
        self.assertEqual(len(of_file.to_dict()["stages"]), 3)
        plan = reshard.plan_job(job)
        self.assertEqual(plan.to_text(), of_file.to_text())
        self.assertIs(reshard.plan_job(job), plan)
        self.assertEqual(plan.simulate(), of_file.simulate())
        for change in ({"after": ("b", "b")}, {"after": "b"}):
            self.assertEqual(
                reshard.plan_job([{**SCATTER, **change}, *job[1:]]).to_text(), of_file.to_text()
            )
        free = reshard.plan_job([SCATTER, GATHER, GATHER])
        self.assertNotEqual(free.to_text(), of_file.to_text())
        self.assertEqual(
            reshard.plan_job([{**SCATTER, "after": ()}, GATHER, GATHER]).to_text(), free.to_text()
        )

    def test_names_of_a_dict_are_ids(self):
        job = {"wo": {**SCATTER, "after": "wq"}, "wq": GATHER, "norm": with_id("n")}
        listed = [{**SCATTER, "after": "wq"}, with_id("wq"), GATHER]
        self.assertEqual(reshard.plan_job(job).to_text(), reshard.plan_job(listed).to_text())
        said = "requests['wo'].after: expected the id of a request of this job, found 'norm', which"
        self.refused(said, reshard.plan_job, {**job, "wo": {**SCATTER, "after": "norm"}})

    def test_orders_that_are_none_are_refused_as_in_files(self):
        for said, job in (
            (
                "requests[1].after: expected the id of a request of this job, found 'z', which "
                "none has",
                [GATHER, after("z")],
            ),
            (
                "requests[2].id: expected each id once, found 'a' again (first in requests[0])",
                [with_id("a"), GATHER, with_id("a")],
            ),
            (
                "requests[0].after: expected no cycle, found 'a' after 'b' after 'a'",
                [{**with_id("a"), "after": "b"}, {**with_id("b"), "after": ["a"]}],
            ),
            (
                "requests['b'].id: expected each id once, found 'a' again (first in requests['a'])",
                {"a": GATHER, "b": with_id("a")},
            ),
            (
                "requests['a'].after: expected no cycle, found 'a' after 'a'",
                {"a": after("a")},
            ),
            (
                "requests[0].after: expected the id of a request of this job, found 'z', which",
                [after(["z"])],
            ),
            (
                "requests[0].id: expected text of at least one character, found ''",
                [with_id("")],
            ),
            ("requests[0].id: expected a string or an integer, found 1.5", [with_id(1.5)]),
            ("requests[0].id: expected a string or an integer, found True", [with_id(True)]),
            ("requests[0].id: expected a string without NUL", [with_id("a\0")]),
            ("requests[0].after: expected a string or an integer, found {}", [after({})]),
            ("requests[0].after: expected a string or an integer, found []", [after([[]])]),
            ("requests[0].after: expected a string without NUL", [after("a\0")]),
        ):
            with self.subTest(said):
                self.refused(said, reshard.plan_job, job)
        # Within a line of a file.
        line = {"requests": [with_id("a"), GATHER, with_id("a")]}
        with JobFile([line]) as path:
            said = f"{path}:1: requests[2].id: expected each id once, found 'a' again (first in req"
            self.refused(said, reshard.plan_job, path)
