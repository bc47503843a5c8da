# SPDX-License-Identifier: BSD-3-Clause
"""Plans of layouts, run on the buffers of a model's ranks."""

import array
import unittest

import reshard
from test_digests import BUFFER, CHECKS, LAYOUTS, right_buffers, rows, tensors_of
from test_execute import Post, run_all

FUSED = "linear_qkv.weight"


def fused_buffer(weights):
    q, k, v = (weights[name + "_proj"] for name in "qkv")
    groups = (rows(q, 4 * g, 4 * g + 4) + rows(k, 2 * g, 2 * g + 2) + rows(v, 2 * g, 2 * g + 2)
              for g in range(2))  # fmt: skip
    return bytearray(b"".join(groups))


class BuffersTest(unittest.TestCase):
    def setUp(self):
        self.plan = reshard.plan_layouts(LAYOUTS)
        self.weights = tensors_of(CHECKS / "qkv.safetensors")
        self.sources = {0: {FUSED: fused_buffer(self.weights)}}
        self.destinations = {rank: {BUFFER: bytearray(48)} for rank in (1, 2)}

    def check(self):
        right = right_buffers(self.weights)
        self.assertEqual({r: held[BUFFER] for r, held in self.destinations.items()}, right)

    def test_buffers_are_listed(self):
        self.assertTrue(self.plan.has_buffers)
        self.assertEqual(self.plan.buffers("from"), [(0, FUSED, (16, 3), "bf16", 96)])
        self.assertEqual([each.rank for each in self.plan.buffers("to")], [1, 2])
        with self.assertRaisesRegex(reshard.InputError, "side: expected 'from' or 'to'"):
            self.plan.buffers("both")
        other = reshard.plan((4,), "f32", 2, "S(0)", "R")
        self.assertFalse(other.has_buffers)
        self.assertEqual(other.buffers("to"), [])

    def test_all_ranks_run_here(self):
        ranks = self.plan.ranks
        self.assertEqual(ranks, [0, 1, 2])
        reshard.execute_all(
            self.plan,
            [self.sources.get(rank) for rank in ranks],
            [self.destinations.get(rank) for rank in ranks],
        )
        self.check()

    def test_every_rank_runs_its_part(self):
        sides = [[side.get(rank, {}) for rank in range(3)]
                 for side in (self.sources, self.destinations)]  # fmt: skip
        run_all(self.plan, *sides)
        self.check()

    def test_what_is_no_buffer_of_the_rank_is_refused(self):
        def refuse(source, destination, what):
            with self.assertRaisesRegex(reshard.InputError, what):
                reshard.execute(self.plan, 1, source, destination, Post().of(1))

        refuse({}, {BUFFER: bytearray(47)}, "destination: buffer .* expected 48 bytes, found 47")
        refuse({}, {BUFFER: bytes(48)}, "destination.*writable")
        refuse({}, {}, "destination: expected the buffer")
        refuse({FUSED: bytearray(96)}, {BUFFER: bytearray(48)}, "source: buffer")
        refuse({}, [bytearray(48)], "destination: expected a dict")
        refuse({}, {7: bytearray(48)}, "destination")

    def test_ranks_convert_and_padding_stays(self):
        lines = [
            {"reshard_check": 1},
            {"tensor": "w", "shape": [2, 2], "dtype": "f16"},
            {"side": "from", "buffer": "master", "mesh": "1", "dtype": "f32", "convert": True,
             "fused": ["w"]},
            {"side": "to", "buffer": "w", "mesh": "1", "ranks": "3", "pad": [3, 1],
             "fused": ["w"]},
        ]  # fmt: skip
        plan = reshard.plan_layouts(lines)
        self.assertIs(plan, reshard.plan_layouts(lines[1:]))
        with self.assertRaisesRegex(reshard.InputError, "^text:2: "):
            reshard.plan_layouts([{"tensor": "w"}])
        held = array.array("f", [1, -2, 0.5, 3])
        got = bytearray(b"\x77" * plan.buffers("to")[0].bytes)
        reshard.execute_all(plan, [{"master": held}, None], [None, {"w": got}])
        self.assertEqual(bytes(got[:8]).hex(), "003c00c000380042")
        self.assertEqual(bytes(got[8:]), b"\x77" * 4)
