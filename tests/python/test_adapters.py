# SPDX-License-Identifier: BSD-3-Clause
"""The adapters of reshard.adapters: the examples of docs/adapters, drawn plans in each framework's
form, which a slow map of elements makes, one changed move, and records that are malformed."""

import copy
import importlib
import json
import os
import pathlib
import random
import subprocess
import sys
import unittest

import adapter_cases
import reshard
from reshard.adapters import dcp, megatron, mooncake, nixl

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "traces/checks/adapters"
NAMES = ("dcp", "megatron", "mooncake", "nixl")
DRAWS = 25


def example(name):
    return json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))


def given_of(name):
    path = EXAMPLES / f"{name}.layouts"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def judged(name, record, given):
    """The findings."""
    module = importlib.import_module(f"reshard.adapters.{name}")
    layouts = module.layouts(record, given) if hasattr(module, "layouts") else given
    try:
        return reshard.check(list(layouts), list(module.copies(record)))["findings"]
    except reshard.Findings as found:
        return json.loads(found.text)["findings"]


def run(name, *paths):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools/python")}
    words = [sys.executable, "-B", "-m", f"reshard.adapters.{name}", *map(str, paths)]
    return subprocess.run(words, env=environment, capture_output=True, text=True)


class Fields:
    """An object of a framework, with the fields of a dict."""

    def __init__(self, fields):
        self.__dict__.update(fields, **({"_cached": object()} if fields else {}))


def objects_of(value, key=None):
    """The JSON of a record as a framework has it: objects, tuples, slices."""
    if isinstance(value, list):
        entries = tuple(objects_of(each, key) for each in value)
        is_slice = key == "my_slice" and entries and not isinstance(entries[0], slice)
        return slice(*entries) if is_slice else entries
    if not isinstance(value, dict):
        return value
    fields = {name: objects_of(each, name) for name, each in value.items()}
    return fields if key == "state_dict_metadata" else Fields(fields)


class ExamplesTest(unittest.TestCase):
    def test_right_and_wrong(self):
        wrong = {
            "dcp": ("wrong place", "model.layers.0.feed_forward.w1.weight"),
            "megatron": ("wrong tensor", "gate"),
            "mooncake": ("wrong place", "model.layers.0.self_attn.o_proj.weight"),
            "nixl": ("wrong place", "o_proj.weight"),
        }
        for name in NAMES:
            with self.subTest(name):
                self.assertEqual(judged(name, example(name), given_of(name)), [])
                found = judged(name, example(f"{name}_wrong"), given_of(name))
                self.assertIn(wrong[name], [(each["kind"], each["tensor"]) for each in found])

    def test_a_checkpoint_is_believed_without_lines_of_what_was_saved(self):
        given = [line for line in given_of("dcp") if line["side"] == "to"]
        self.assertEqual(judged("dcp", example("dcp"), given), [])
        self.assertEqual(judged("dcp", example("dcp_wrong"), given), [])

    def test_objects_are_as_good_as_json(self):
        for name in NAMES:
            with self.subTest(name):
                module, record = importlib.import_module(f"reshard.adapters.{name}"), example(name)
                if name == "megatron":
                    there = [objects_of(plan) for plan in record]
                else:  # its outermost dicts, and those by name, are dicts in Python too
                    there = {key: objects_of(each, key) for key, each in record.items()}
                if name == "nixl":
                    agents = record["agents"].items()
                    there["agents"] = {key: objects_of(each) for key, each in agents}
                self.assertEqual(list(module.copies(there)), list(module.copies(record)))

    def test_ranks_of_the_target_follow_those_of_the_source(self):
        lines = list(mooncake.copies(example("mooncake")))
        self.assertEqual({line["from"]["rank"] for line in lines}, {0, 1})
        self.assertEqual({line["to"]["rank"] for line in lines}, {2, 3, 4, 5})

    def test_a_list_or_a_dict_by_rank(self):
        plans = example("megatron")
        by_rank = {str(rank): plan for rank, plan in enumerate(plans)}
        self.assertEqual(list(megatron.copies(by_rank)), list(megatron.copies(plans)))

    def test_dtypes_and_kinds_as_torch_has_them(self):
        class Kind:
            name = "BYTE_IO"

        load = example("dcp")
        count = len(list(dcp.copies(load)))
        load["plans"][0]["items"][0]["type"] = Kind()
        load["plans"][0]["items"][1]["type"] = "LoadItemType.TENSOR"
        self.assertEqual(len(list(dcp.copies(load))), count - 1)


class DrawnTest(unittest.TestCase):
    """Each makes (record, given lines, moves): a move changes one thing of the record so that the
    copies have the same sizes and other elements, and returns the tensor that is then wrong."""

    def draw(self, name):
        moved = 0
        for seed in range(DRAWS):
            with self.subTest(name, seed=seed):
                chance = random.Random(f"{name} {seed}")
                record, given, moves = getattr(adapter_cases, name)(chance)
                self.assertEqual(judged(name, json.loads(json.dumps(record)), given), [])
                if not moves:
                    continue
                tensor = chance.choice(moves)()
                found = judged(name, json.loads(json.dumps(record)), given)
                self.assertIn(tensor, {each["tensor"] for each in found})
                moved += 1
        self.assertGreater(moved, DRAWS / 2)

    def test_dcp(self):
        self.draw("dcp")

    def test_megatron(self):
        self.draw("megatron")

    def test_mooncake(self):
        self.draw("mooncake")

    def test_nixl(self):
        self.draw("nixl")


def places_of(value, path=()):
    """The paths of all that is in a record."""
    yield path
    if isinstance(value, (dict, list)):
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        for key, each in entries:
            yield from places_of(each, (*path, key))


def changed(record, path, change):
    record = copy.deepcopy(record)
    if not path:
        return change(record)
    at = record
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = change(at[path[-1]])
    return record


def without(record, path):
    record = copy.deepcopy(record)
    at = record
    for key in path[:-1]:
        at = at[key]
    del at[path[-1]]
    return record


class MalformedTest(unittest.TestCase):
    def test_one_sentence_or_lines(self):
        """Whatever is at any place, the adapter refuses it in a sentence, or there are lines."""
        chance, refused = random.Random(5), 0
        others = (None, -1, 1.5, True, "", "x", [], {}, [None], [[1, 2]], {"x": 1}, 10**30)
        for name in NAMES:
            module, record = importlib.import_module(f"reshard.adapters.{name}"), example(name)
            paths = list(places_of(record))
            cases = [changed(record, path, lambda _: other)  # noqa: B023  (called at once)
                     for path in chance.sample(paths, 60) for other in others]  # fmt: skip
            cases += [without(record, path) for path in chance.sample(paths, 60) if path]
            for case in cases:
                try:
                    list(module.copies(case))
                    if hasattr(module, "layouts"):
                        list(module.layouts(case))
                except reshard.InputError as error:
                    self.assertRegex(str(error), r"^[\w.\[\]/-]+: .*(expected|not known|overlap)|"
                                     r"^plans: rank \d+ sends")  # fmt: skip
                    self.assertNotIn("\n", str(error))
                    refused += 1
        self.assertGreater(refused, 1000)

    def refuses(self, name, path, other, sentence):
        record = changed(example(name), path, lambda _: other)
        module = importlib.import_module(f"reshard.adapters.{name}")
        with self.assertRaisesRegex(ValueError, sentence):
            list(module.copies(record))

    def test_megatron(self):
        first = (2, "recv_ops", 0)
        for path, other, sentence in [
            ((), 3, r"^plans: expected a list, found 3$"),
            ((), {"x": 1}, r"^plans: expected ranks as keys, found 'x'$"),
            ((0,), {}, r"^plans\[0\]: expected the field send_ops, which is missing$"),
            (first[:1], {"send_ops": [], "recv_ops": []},
             r"^plans: rank 0 sends \d+ times to rank 2, which receives 0 times from it$"),
            ((*first, "peer_rank"), -1, r"peer_rank: expected an integer of at least 0, found -1"),
            ((*first, "peer_rank"), True, r"peer_rank: expected an integer of at least 0, found T"),
            ((*first, "peer_rank"), 17, r"peer_rank: expected a rank that has a plan, found 17$"),
            ((*first, "task_id"), 99, r"recv_ops\[0\]: expected task and batch \[\d+, 0\], as th"),
            ((*first, "my_slice", 0), [0, 4, 2], r"my_slice\[0\]: expected a slice without a step"),
            ((*first, "my_slice", 0), [0, -4, None], r"my_slice\[0\]: expected an integer of at"),
            ((*first, "my_slice", 0), "0:4", r"my_slice\[0\]: expected a slice such as \[0, 4, nu"),
            ((*first, "is_send"), True, r"recv_ops\[0\].is_send: expected False, found True"),
        ]:  # fmt: skip
            with self.subTest(sentence):
                self.refuses("megatron", path, other, sentence)
        plans = example("megatron")
        plans[0]["transform"] = "mxfp8"
        with self.assertRaisesRegex(ValueError, r"^plans\[0\].transform: expected none, found 'mx"):
            list(megatron.copies(plans))
        plans[0]["transform"], plans[0]["send_ops"][0]["scale"] = None, 2
        with self.assertRaisesRegex(ValueError, r"'scale' is not known, and could change the rest"):
            list(megatron.copies(plans))

    def test_mooncake(self):
        first = ("operations", 0)
        for path, other, sentence in [
            (("source_placement",), None, r"^plan.source_placement: expected a record with "),
            ((*first, "inner_bytes"), 3, r"operations\[0\].source: expected a multiple of 2, fou"),
            ((*first, "outer_loop_counts"), [4, 4, 4], r"source_strides: expected one for each of"),
            ((*first, "source", "placement_fragment_id"), "x", r"expected a fragment of the p"),
            ((*first, "source_base_offset"), -2, r"source_base_offset: expected an integer of at"),
            (("target_placement", "tensors", 0, "layout_fingerprint"), "x", r"^plan.target_pl"),
            (("target_placement", "parts", 0, "participant_id"), "x", r"expected one of its p"),
        ]:  # fmt: skip
            with self.subTest(sentence):
                self.refuses("mooncake", path, other, sentence)
        stored = {**example("mooncake"), "source_manifest": {}}
        with self.assertRaisesRegex(ValueError, "^plan.source_manifest: expected none, found"):
            list(mooncake.copies(stored))

    def test_dcp(self):
        first = ("plans", 0, "items", 0)
        for path, other, sentence in [
            ((*first, "type"), 1, r"items\[0\].type: expected TENSOR or BYTE_IO, found 1$"),
            ((*first, "storage_index", "offset"), [9, 9], r"storage_index: expected a chunk of "),
            ((*first, "lengths"), [2], r"expected an extent for each of"),
            ((*first, "dest_index", "offset"), None, r"dest_index: expected as many offsets as"),
            (("metadata", "storage_data", 0, 1, "relative_path"), "model.safetensors",
             r"expected files such as __0_0.distcp, which name the rank that saved, found 'model"),
        ]:  # fmt: skip
            with self.subTest(sentence):
                self.refuses("dcp", path, other, sentence)

    def test_nixl(self):
        first = ("transfers", 0)
        for path, other, sentence in [
            ((*first, "operation"), "COPY", r"operation: expected WRITE or READ, found 'COPY'$"),
            ((*first, "remote_agent"), "x", r"remote_agent: expected one of the agents, foun"),
            ((*first, "local_descs", 0), [64, 64, 0], r"expected an address in a region of device"),
            ((*first, "local_descs", 0, 2), 7, r"expected an address in a region of device 7 of"),
            ((*first, "local_descs", 0, 1), 32, r"remote_descs\[0\]: expected 32 bytes, as local"),
            ((*first, "local_descs"), [], r"remote_descs: expected 0, as in local_descs, found 9"),
            (("agents", "trainer-0", "regions", 0, 3), "", r"regions\[0\]\[3\]: expected a text"),
            (("agents", "trainer-0", "regions", 0, 1), 4096, r"_proj.weight overlap$"),
        ]:  # fmt: skip
            with self.subTest(sentence):
                self.refuses("nixl", path, other, sentence)

    def test_beyond_a_region(self):
        record = example("nixl")
        for side in ("local_descs", "remote_descs"):
            record["transfers"][0][side][0][1] += 1024
        kinds = [each["kind"] for each in judged("nixl", record, given_of("nixl"))]
        self.assertIn("out of buffer", kinds)


class ProgramTest(unittest.TestCase):
    def test_lines_that_check_reads(self):
        for name in NAMES:
            with self.subTest(name):
                layouts = EXAMPLES / f"{name}.layouts"
                done = run(name, EXAMPLES / f"{name}.json", *[layouts] if layouts.exists() else [])
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                lines = [json.loads(line) for line in done.stdout.splitlines()]
                self.assertEqual(lines[0], {"reshard_check": 1})
                self.assertEqual(reshard.check(lines)["findings"], [])

    def test_refusals(self):
        there = EXAMPLES / "megatron.json"
        for words, sentence in [
            ([there], "expected LAYOUTS, as the record does not say what lies where"),
            ([EXAMPLES / "none.json", there], "none.json: No such file or directory"),
            ([EXAMPLES / "megatron.layouts", there], "megatron.layouts: expected JSON: Extra data"),
            ([there, EXAMPLES / "megatron_wrong.json"], "megatron_wrong.json: expected JSON"),
            ([EXAMPLES / "nixl.json", EXAMPLES / "megatron.layouts"], "plans: expected ranks as"),
        ]:
            with self.subTest(sentence):
                done = run("megatron", *words)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertRegex(done.stderr, f"^reshard: error: .*{sentence}.*\n$")
        done = run("nixl")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertTrue(done.stderr.startswith("usage: python3 -m reshard.adapters.nixl RECORD"))
