# SPDX-License-Identifier: BSD-3-Clause
"""Plans that leave as Mooncake's (`plan --emit mooncake`): read again by the adapter, they must be
proved; and where Mooncake planned the same, its operations must be the same."""

import json
import pathlib
import random
import tempfile
import unittest

import adapter_cases
import reshard
from reshard.adapters import mooncake

ROOT = pathlib.Path(__file__).resolve().parents[2]
DRAWS = 60


def exported(*words):
    return json.loads(reshard.command("plan", *words, "--planner", "p2p", "--emit", "mooncake"))


def exported_layouts(lines):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))
        file.flush()
        return exported("--requests", file.name)


def proved(record):
    """How many copies it has, all right."""
    copies = list(mooncake.copies(record))
    assert reshard.check(list(mooncake.layouts(record)), copies)["findings"] == []
    return len(copies)


def header(lines):
    return [{"reshard_check": 1}, *lines]


class RoundTripTest(unittest.TestCase):
    def test_the_recorded_plan(self):
        path = ROOT / "traces/checks/adapters/mooncake.json"
        theirs = json.loads(path.read_text(encoding="utf-8"))
        ours = exported_layouts(header(mooncake.layouts(theirs)))
        self.assertEqual(proved(ours), len(theirs["operations"]))
        of_tensor = lambda each: each["tensor_id"]
        for side in ("source_placement", "target_placement"):
            axes = lambda plan: [each["parallel_axes"] for each in plan[side]["tensors"]]
            self.assertEqual(axes(ours), axes(theirs))
        loops = lambda each: (
            of_tensor(each), each["target"]["rank"]["tp"], each["overlap_offset"],
            each["overlap_shape"], each["source_base_offset"], each["target_base_offset"],
            each["inner_bytes"], each["outer_loop_counts"], each["source_strides"],
            each["target_strides"],
        )  # fmt: skip
        self.assertEqual(sorted(map(loops, ours["operations"])),
                         sorted(map(loops, theirs["operations"])))  # fmt: skip

    def test_drawn_requests(self):
        chance, copies, refused = random.Random(1), 0, 0
        for i in range(DRAWS):
            dims = chance.randrange(1, 4)
            words = ["--shape", ",".join(str(chance.randrange(1, 13)) for _ in range(dims)),
                     "--dtype", chance.choice(("bf16", "f32", "u8"))]  # fmt: skip
            for mesh, side in (("--mesh", "--from"), ("--to-mesh", "--to")):
                axes = chance.randrange(1, 3)
                words += [mesh, "x".join(str(chance.randrange(1, 4)) for _ in range(axes)), side]
                kinds = ["R", *(f"S({d})" for d in range(dims))]
                words += ["".join(chance.choice(kinds) for _ in range(axes))]
            with self.subTest(i, words=" ".join(words)):
                try:
                    copies += proved(exported(*words))
                except reshard.InputError as error:
                    self.assertRegex(str(error), "^--emit mooncake: expected .*, found 'tensor 0'")
                    refused += 1
        self.assertGreater(copies, 2 * DRAWS)
        self.assertLess(refused, DRAWS / 2)

    def test_drawn_layouts(self):
        proved_ones = 0
        for seed in range(DRAWS):
            record, _, _ = adapter_cases.mooncake(random.Random(f"export {seed}"))
            with self.subTest(seed):
                try:
                    proved(exported_layouts(header(mooncake.layouts(record))))
                    proved_ones += 1
                except reshard.InputError as error:
                    self.assertRegex(str(error), "^--emit mooncake: expected ")
        self.assertGreater(proved_ones, 0)

    def test_stages_copies_and_owners(self):
        """Two stages, each with two copies of a tensor cut in two, and a tensor of one owner."""
        lines = [{"tensor": name, "shape": [8, 4], "dtype": "bf16"} for name in ("a", "b", "norm")]
        for name, ranks in (("a", "0-3"), ("b", "4-7")):
            lines.append({"side": "from", "tensor": name, "mesh": "dp=2,tp=2", "ranks": ranks,
                          "placements": "RS(1)"})  # fmt: skip
        lines.append({"side": "from", "tensor": "norm", "mesh": "1", "ranks": "5"})
        for name in ("a", "b", "norm"):
            lines.append({"side": "to", "tensor": name, "mesh": "1", "ranks": "8"})
        record = exported_layouts(header(lines))
        self.assertEqual(proved(record), 5)
        topology = record["source_placement"]["topology"]
        sizes = [topology[f"{axis}_size"] for axis in ("dp", "pp", "tp")]
        self.assertEqual(sizes, [2, 2, 2])
        norm = record["source_placement"]["tensors"][2]
        self.assertEqual({each["semantics"] for each in norm["parallel_axes"]}, {"ownership"})

    def test_what_it_has_no_words_for(self):
        whole = {"side": "to", "tensor": "w", "mesh": "1", "ranks": "4"}
        tensor = {"tensor": "w", "shape": [4, 6], "dtype": "bf16"}
        cut = {"side": "from", "tensor": "w", "mesh": "2"}
        for lines, sentence in [
            ([tensor, {**cut, "order": [1, 0]}, whole], r"contiguous and row-major, found w\[0:4,"),
            ([tensor, {**cut, "dtype": "f32", "convert": True}, whole], "as they travel, found"),
            ([tensor, {**cut, "mesh": "2x2", "placements": "S(0)S(1)"}, whole], "cut otherwise"),
            ([tensor, cut, whole, {**whole, "buffer": "again"}], "once on a rank, found 'w' twice"),
            ([{**tensor, "shape": []}, cut, whole], "one dim or more, none empty, found 'w'"),
        ]:
            with self.subTest(sentence), self.assertRaisesRegex(reshard.InputError, sentence):
                exported_layouts(header(lines))
