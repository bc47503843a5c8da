# SPDX-License-Identifier: BSD-3-Clause
"""Runs the code that docs/python.md shows, unchanged; README.md shows parts of it."""

import json
import os
import pathlib
import re
import tempfile
import unittest

import reshard

ROOT = pathlib.Path(__file__).resolve().parents[2]


def blocks_of(page):
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


BLOCKS = blocks_of("docs/python.md")


def block_with(text):
    (block,) = [each for each in BLOCKS if text in each]
    return block


class DocsTest(unittest.TestCase):
    def test_asking(self):
        names = {}
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                exec(block_with("plan.explain()").replace("print(", "str("), names)
                self.assertTrue(os.path.exists("timeline.json"))
                self.assertTrue(os.path.exists("plan.html"))
            finally:
                os.chdir(before)
        self.assertGreaterEqual(names["plan"].time_ps, names["plan"].bound_ps)

    def test_a_job(self):
        names = {"reshard": reshard}
        exec(block_with("plan_job({").replace("print(", "str("), names)
        job = names["job"]
        self.assertEqual(job.tensor_count, 96)
        self.assertEqual(job.shard_shapes(8, "layers.0.wq"), (None, (1024, 4096)))
        one_by_one = sum(
            reshard.plan(
                shape, "bf16", (4, 2), "S(0)R", "S(0)" if len(shape) > 1 else "R",
                to_mesh=names["generator"],
            ).time_ps
            for shape in names["kinds"].values()
        )  # fmt: skip
        self.assertLess(job.time_ps, 32 * one_by_one)

    def test_a_job_of_layouts(self):
        path = ROOT / "traces/checks/qkv.copies"
        block = block_with("traces/checks").replace("traces/checks/qkv.copies", str(path))
        exec(block, {"reshard": reshard})

    def test_a_model_between_frameworks(self):
        config = {"model_type": "llama", "num_hidden_layers": 4, "hidden_size": 64,
                  "vocab_size": 100, "num_attention_heads": 32, "num_key_value_heads": 8,
                  "head_dim": 16, "intermediate_size": 128}  # fmt: skip
        names = {"reshard": reshard}
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                pathlib.Path("config.json").write_text(json.dumps(config))
                exec(block_with("reshard.models.config("), names)
            finally:
                os.chdir(before)
        moved = names["moved"]
        self.assertGreaterEqual(moved.time_ps, moved.bound_ps)
        # The third of four has KV heads 4 and 5, and row 130 is the third of its keys, which on
        # Megatron's second of two come after 4 x 16 rows of queries.
        (place,) = moved.source_of("layers.3.self_attn.qkv_proj.weight", (130, 0), rank=6)
        self.assertEqual((place.rank, place.index), (3, (66, 0)))

    def test_copies_are_judged(self):
        names = {"reshard": reshard}
        exec(block_with("reshard.check(layouts, copies"), names)
        layouts, copies = names["layouts"], names["copies"]
        with self.assertRaisesRegex(reshard.Findings, "^copies.jsonl: 1 finding$") as found:
            reshard.check(layouts, copies[1:])
        self.assertEqual(json.loads(found.exception.text)["findings"][0]["kind"], "missing")

    def test_a_test_in_five_lines(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("no NumPy")
        names = {"numpy": numpy}
        block = block_with("def test_transpose")
        self.assertEqual(len(block.strip().splitlines()), 5)
        self.assertIn(block, blocks_of("README.md"))
        exec(block, names)
        names["test_transpose"](reshard.LocalTensor.of)

    def test_the_fixture_is_found_by_pytest(self):
        try:
            import pytest
        except ImportError:
            self.skipTest("no pytest")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "test_it.py"
            tests = [block_with("def test_transpose"), block_with("def test_budget")]
            path.write_text("import numpy\n\n" + "\n".join(tests))
            arguments = ["-q", "-p", "reshard.pytest_plugin", "-p", "no:cacheprovider", str(path)]
            self.assertEqual(pytest.main(arguments), 0)
