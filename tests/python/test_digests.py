# SPDX-License-Identifier: BSD-3-Clause
"""Digests of what ranks hold, gathered and compared by the command line: the transfer of
traces/checks/qkv.copies as its copies do it, wrongly, and as it should be."""

import array
import json
import os
import pathlib
import struct
import sys
import tempfile
import types
import unittest
import unittest.mock

import reshard

CHECKS = pathlib.Path(__file__).resolve().parents[2] / "traces/checks"
LAYOUTS = CHECKS / "qkv.copies"
BUFFER, ROW = "qkv_proj.weight", 6  # 3 bf16


def tensors_of(path):
    """A safetensors file as bytes by name, read once more."""
    data = path.read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])
    offsets = {name: entry["data_offsets"] for name, entry in header.items()}
    return {name: data[start + begin : start + end] for name, (begin, end) in offsets.items()}


def rows(tensor, first, last):
    return tensor[first * ROW : last * ROW]


def right_buffers(weights):
    q, k, v = (weights[name + "_proj"] for name in "qkv")
    return {
        1: bytearray(rows(q, 0, 4) + rows(k, 0, 2) + rows(v, 0, 2)),
        2: bytearray(rows(q, 4, 8) + rows(k, 2, 4) + rows(v, 2, 4)),
    }


def copied_buffers(weights):
    """As the copies of the file fill them."""
    q, k, v = (weights[name + "_proj"] for name in "qkv")
    source = rows(q, 0, 4) + rows(k, 0, 2) + rows(v, 0, 2)
    source += rows(q, 4, 8) + rows(k, 2, 4) + rows(v, 2, 4)
    return {
        1: rows(source, 0, 4) + rows(source, 8, 10) + rows(source, 12, 14),
        2: rows(source, 4, 8) + rows(source, 10, 12) + rows(source, 14, 16),
    }


def gathered(buffers, **options):
    return reshard.gather_digests(
        reshard.digest(LAYOUTS, rank, {BUFFER: held}, **options) for rank, held in buffers.items()
    )


class Words:
    """An array whose elements nothing but their bytes can be had of, as bf16 of NumPy."""

    __array_interface__ = {}

    def __init__(self, held):
        self.held = held

    def view(self, dtype):
        assert dtype == "u1"
        return self.held


class DigestTest(unittest.TestCase):
    def setUp(self):
        self.weights = tensors_of(CHECKS / "qkv.safetensors")

    def compared(self, found, *options):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "found.json")
            with open(path, "w") as file:
                json.dump(found, file)
            return reshard.command(
                *("digest", "--layout", str(LAYOUTS), "--json", *options),
                *("--expect", str(CHECKS / "qkv.expected.json"), path),
            )

    def test_what_ranks_should_hold(self):
        found = gathered(right_buffers(self.weights), rows=2)
        self.assertEqual(found, json.loads((CHECKS / "qkv.expected.json").read_text()))
        self.assertTrue(json.loads(self.compared(found))["equal"])

    def test_what_wrong_copies_leave(self):
        found = gathered(copied_buffers(self.weights), rows=2)
        self.assertEqual(found, json.loads((CHECKS / "qkv.found.json").read_text()))
        with self.assertRaises(reshard.Findings) as raised:
            self.compared(found)
        findings = json.loads(raised.exception.text)["findings"]
        self.assertEqual({each["kind"] for each in findings}, {"wrong tensor"})

    def test_a_rank_that_is_missing(self):
        found = reshard.digest(LAYOUTS, 1, {BUFFER: right_buffers(self.weights)[1]}, rows=2)
        with self.assertRaises(reshard.Findings) as raised:
            self.compared(found)
        (finding,) = json.loads(raised.exception.text)["findings"]
        self.assertEqual((finding["kind"], finding["ranks"]), ("missing", "2"))

    def test_arrays_of_any_kind(self):
        held = bytes(right_buffers(self.weights)[1])
        expected = reshard.digest(LAYOUTS, 1, {BUFFER: held})
        for each in (
            bytearray(held),
            array.array("H", held),
            memoryview(held).cast("B", (8, 6)),
            Words(held),
        ):
            self.assertEqual(reshard.digest(LAYOUTS, 1, {BUFFER: each}), expected)

    def test_tensors_that_dlpack_does_not_know(self):
        held = bytes(right_buffers(self.weights)[1])

        class Tensor:
            def __dlpack__(self, **_):
                raise BufferError("no such dtype")

            def detach(self):
                return self

            def view(self, dtype):
                assert dtype == "uint8"
                return held

        torch = types.SimpleNamespace(uint8="uint8", Tensor=Tensor)
        with unittest.mock.patch.dict(sys.modules, {"torch": torch}):
            found = reshard.digest(LAYOUTS, 1, {BUFFER: Tensor()})
        self.assertEqual(found, reshard.digest(LAYOUTS, 1, {BUFFER: held}))

    def test_arrays_of_numpy(self):
        try:
            import ml_dtypes
            import numpy
        except ImportError:
            self.skipTest("no NumPy with ml_dtypes")
        held = bytes(right_buffers(self.weights)[1])
        expected = reshard.digest(LAYOUTS, 1, {BUFFER: held})
        plain = numpy.frombuffer(held, "u2").reshape(8, 3)
        for each in (plain, plain.view(ml_dtypes.bfloat16), plain.view("f2")):
            self.assertEqual(reshard.digest(LAYOUTS, 1, {BUFFER: each}), expected)
        with self.assertRaisesRegex(reshard.InputError, "contiguous"):
            reshard.digest(LAYOUTS, 1, {BUFFER: numpy.asfortranarray(plain)})
        lines = [
            {"tensor": "w", "shape": [4], "dtype": "f8e4m3"},
            {"side": "to", "tensor": "w", "mesh": "1"},
        ]
        eight = numpy.frombuffer(b"abcd", ml_dtypes.float8_e4m3fn)
        self.assertEqual(
            reshard.digest(lines, 0, {"w": eight}), reshard.digest(lines, 0, {"w": b"abcd"})
        )

    def test_what_is_refused(self):
        held = right_buffers(self.weights)[1]

        def refused(what, *arguments, **options):
            with self.assertRaisesRegex(reshard.InputError, what):
                reshard.digest(*arguments, **options)

        refused("expected 48 bytes, bf16.8,3., found 47", LAYOUTS, 1, {BUFFER: held[1:]})
        refused("found 49", LAYOUTS, 1, {BUFFER: held + b"1"})
        refused("found 0", LAYOUTS, 1, {BUFFER: None})
        refused("those that rank 1 has on the side to, found 'w'", LAYOUTS, 1, {"w": held})
        refused("those that rank 3 has", LAYOUTS, 3, {BUFFER: held})
        refused("side: expected", LAYOUTS, 1, {BUFFER: held}, side="both")
        refused("rank: expected", LAYOUTS, -1, {BUFFER: held})
        refused("rank: expected", LAYOUTS, "1", {BUFFER: held})
        refused("rows: expected", LAYOUTS, 1, {BUFFER: held}, rows=-1)
        refused("buffers: expected a dict", LAYOUTS, 1, [held])
        refused("buffers: expected a string", LAYOUTS, 1, {1: held})
        refused("buffer protocol", LAYOUTS, 1, {BUFFER: 17})
        refused("^layouts:2: dtype", [{"tensor": "w", "shape": [1]}], 1, {})
        large = [
            {"tensor": "w", "shape": [2**30], "dtype": "f32"},
            {"side": "to", "tensor": "w", "mesh": "1"},
        ]
        refused("at most 16777216 blocks", large, 0, {}, rows=1)
        one = reshard.digest(LAYOUTS, 1, {BUFFER: held})
        for wrong, what in (
            ([], "expected 1 or more"),
            ([one, one], "each part of a rank once"),
            ([{}], "digests 0: expected digests"),
            ([one, {**one, "more": 1}], "digests 1: .more.: expected a field"),
            (one, "expected a list of dicts"),
            ([{"reshard_digest": {1}}], "JSON value"),
        ):
            with self.assertRaisesRegex(reshard.InputError, what):
                reshard.gather_digests(wrong)
