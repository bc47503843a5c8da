# SPDX-License-Identifier: BSD-3-Clause
"""reshard.models: transfers between frameworks, from a model's config.json."""

import contextlib
import json
import os
import pathlib
import random
import tempfile
import unittest

import reshard
from model_cases import PADDING, DrawnTransfer, short
from test_execute import run_all

LLAMA = {
    "model_type": "llama", "num_hidden_layers": 4, "hidden_size": 8, "vocab_size": 90,
    "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 2, "intermediate_size": 16,
    "torch_dtype": "bfloat16",
}  # fmt: skip
# Experts in slots beyond their number; KV heads fewer than ranks, and from there back to Megatron;
# MLA; flat parameters; FSDP2 on ranks that have nothing of some tensors.
SEEDS = (28, 40, 11, 13, 18, 33)


def transferred(**options):
    model = reshard.models.config(LLAMA)
    train, serve = model.megatron(tp=2, pp=2), model.vllm(tp=4, replicas=2)
    return reshard.models.transfer(train, serve, to_ranks=range(4, 12), **options)


def element_of(job, drawn, place):
    """The number of the element at a Place of the source."""
    (found,) = (each for each in drawn.transfer.buffers("from", place.rank)
                if each.name == place.buffer)  # fmt: skip
    at = 0
    for index, extent in zip(place.index, found.shape):
        at = at * extent + index
    return drawn.numbers["from", place.rank, short(place.buffer)][at]


class ModelsTest(unittest.TestCase):
    @contextlib.contextmanager
    def refused(self, text):
        with self.assertRaises(reshard.InputError) as found:
            yield
        self.assertIn(text, str(found.exception))

    # ---- models and sides

    def test_frameworks_are_those_of_the_program(self):
        listed = reshard.models.frameworks()
        names = {"megatron", "fsdp2", "hsdp", "fsdp1", "zero3", "vllm", "sglang", "hf", "whole"}
        self.assertLessEqual(names, set(listed))
        self.assertIn("ep", listed["vllm"].words)
        self.assertIn("vocab-divisible=", listed["megatron"].words)
        model = reshard.models.config(LLAMA)
        self.assertLessEqual(set(listed), set(dir(model)))
        for name in listed:
            self.assertEqual(getattr(model, name)().words, name)
        with self.assertRaisesRegex(AttributeError, "no 'nemo' .frameworks: megatron, "):
            model.nemo(tp=2)
        self.assertFalse(hasattr(model, "_repr_png_"))

    def test_words(self):
        model = reshard.models.config(LLAMA)
        for side, words in (
            (model.megatron(tp=2, vocab_divisible=64), "megatron tp=2 vocab-divisible=64"),
            (model.vllm(tp=4, ep=True, replicas=None), "vllm tp=4 ep"),
            (model.vllm(ep=False, layers=(3, 1), pp=2), "vllm layers=3,1 pp=2"),
            (model.megatron(order="tp-cp-ep-dp-pp"), "megatron order=tp-cp-ep-dp-pp"),
            (model.side("hf tp=2"), "hf tp=2"),
        ):
            self.assertEqual(side.words, words)
            self.assertIn(words, repr(side))
        for bad in ("", "2 pp=4", 2.5, {}):
            with self.refused("tp: expected a number, a word, True or a list"):
                model.megatron(tp=bad)

    def test_a_config_is_a_path_a_text_or_a_dict(self):
        class Config:
            def to_dict(self):
                return LLAMA

        text = json.dumps(LLAMA)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "config.json"
            path.write_text("\ufeff" + text, encoding="utf-8")
            given = [LLAMA, text, path, str(path), folder, Config()]
            models = list(map(reshard.models.config, given))
            path.write_bytes(b"\xff")
            with self.refused("config.json: expected UTF-8 text"):
                reshard.models.config(path)
            with self.refused("config: expected a file that can be read"):
                reshard.models.config(os.path.join(folder, "other.json"))
        written = {reshard.models.transfer(each.hf(tp=2), each.whole()).layouts for each in models}
        self.assertEqual(len(written), 1)
        self.assertEqual([each.name for each in models[:3]], ["config", "config", str(path)])
        with self.assertRaisesRegex(reshard.InputError, "^config: expected one JSON object"):
            reshard.models.config("{")
        for bad in (7, None, b"{}"):
            with self.refused("config: expected a path, a text or a dict"):
                reshard.models.config(bad)
        with self.refused("config: expected a JSON value"):
            reshard.models.config({"model_type": {1}})

    def test_what_cannot_be_is_refused(self):
        model = reshard.models.config(LLAMA)
        train, serve = model.megatron(tp=2), model.vllm(tp=2)
        transfer = reshard.models.transfer
        with self.refused("from: tp: expected a number that divides 8"):
            transfer(model.megatron(tp=3), serve)
        with self.refused("to: expected vllm with "):
            transfer(train, model.vllm(tp=2, cp=2))
        with self.refused("to_ranks: expected 2 ranks for 'vllm tp=2', found 3"):
            transfer(train, serve, to_ranks="3-5")
        with self.refused("ranks: expected ranks such as '8-11' or numbers, found 3"):
            transfer(train, serve, ranks=3)
        with self.refused("dtype: expected fp8 for a model with a weight_block_size"):
            transfer(train, serve, dtype="fp8")
        with self.refused("source: expected a side such as"):
            transfer("megatron tp=2", serve)
        other = reshard.models.config({**LLAMA, "vocab_size": 91})
        with self.refused("target: expected a side of the model"):
            transfer(train, other.vllm(tp=2))
        with self.refused("config: model_type: expected "):
            reshard.models.config({})
        with self.refused("config: hidden_size: expected "):
            reshard.models.config({**LLAMA, "hidden_size": -1})
        with self.refused("planner"):
            transfer(train, serve, planner="none").time_ps
        with self.assertRaises(TypeError):
            transfer(train, serve, speed=2)

    # ---- answers

    def test_layouts_times_and_report_are_those_of_the_program(self):
        moved = transferred(topology="dgx-h100:2")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "config.json"
            path.write_text(json.dumps(LLAMA))
            words = ["model", str(path), "--from", "megatron tp=2 pp=2", "--to",
                     "vllm tp=4 replicas=2", "--to-ranks", "4-11"]  # fmt: skip
            self.assertEqual(reshard.command(*words, "--emit", "layout"), moved.layouts)
            words += ["--topology", "dgx-h100:2", "--json"]
            report = json.loads(reshard.command(*words))
        self.assertEqual(moved.report(), report)
        self.assertEqual(report["schema"], "reshard.model/1")
        self.assertEqual(moved.report(topology="dgx-a100:2")["schema"], "reshard.model/1")
        self.assertEqual(moved.time_ps, report["run"]["time_ps"])
        self.assertEqual(moved.bound_ps, report["run"]["bound"]["time_ps"])
        self.assertIs(moved.plan, transferred(topology="dgx-h100:2").plan)
        self.assertIn("megatron tp=2 pp=2 -> vllm tp=4 replicas=2", repr(moved))
        several = moved.report(what_if="tp=8,16")
        self.assertEqual(len(several["what_if"]), 2)
        with self.refused("what_if: "):
            moved.report(what_if="tp")

    def test_notes(self):
        nested = reshard.models.config({"model_type": "llava", "text_config": LLAMA})
        found = reshard.models.transfer(nested.hf(tp=2), nested.whole()).notes
        self.assertEqual(found[0], "only the weights of text_config, not those of other inputs")
        self.assertEqual([note.partition(":")[0] for note in found[1:]], ["from"])
        self.assertEqual(transferred().notes, ())

    def test_where_and_source(self):
        moved = transferred()
        parts = moved.where("layers.3.self_attn.q_proj.weight[5,1]")
        self.assertEqual({part["side"] for part in parts}, {"from", "to"})
        found = moved.source_of("layers.3.self_attn.o_proj.weight", (2, 1), rank=7)
        # Rank 7 is the last of four, which has columns 12 to 15; layer 3 is the second of stage 1.
        name = "decoder.layers.1.self_attention.linear_proj.weight"
        self.assertEqual([each.rank for each in found], [3])
        self.assertTrue(found[0].buffer.endswith(name), found)
        self.assertEqual(found[0].index, (2, 5))
        whole = moved.source_of("layers.3.self_attn.o_proj.weight", [2, 13])
        self.assertEqual(whole, found)
        for name, index, rank, what in (
            ("nothing", (0, 0), 7, "name: "),
            ("embed_tokens.weight", (0, 0), 7, "name: expected a buffer in which rank 7 has"),
            ("layers.3.self_attn.o_proj.weight", (0, 0), 2, "name: expected a buffer in which"),
            ("layers.3.self_attn.o_proj.weight", (0, 4), 7, "index: expected one of layers.3"),
            ("layers.3.self_attn.o_proj.weight", (0,), 7, "index: expected one of layers.3"),
            ("layers.3.self_attn.o_proj.weight", (0, -1), 7, "index: expected a number"),
            ("layers.3.self_attn.o_proj.weight", "0", 7, "index: expected a tuple"),
            ("embed_tokens.weight", (30, 0), 6, "index: expected elements of a tensor, found pad"),
        ):
            with self.refused(what):
                moved.source_of(name, index, rank)

    def test_sources_of_drawn_models(self):
        rng, asked = random.Random(1), 0
        for seed in SEEDS:
            drawn = DrawnTransfer(seed)
            held = [(rank, name, *each) for rank in drawn.transfer.plan.ranks
                    for name, each in drawn.held("to", rank).items()]  # fmt: skip
            for rank, name, buffer, numbers in rng.sample(held, 12):
                places = [at for at, number in enumerate(numbers) if number >= 0]
                if not places:
                    continue
                at = rest = rng.choice(places)
                index = []
                for extent in reversed(buffer.shape):
                    index.insert(0, rest % extent)
                    rest //= extent
                found = drawn.transfer.source_of(name, index, rank)
                everywhere = sum(own.count(numbers[at])
                                 for (side, *_), own in drawn.numbers.items() if side == "from")
                self.assertEqual(len(found), everywhere, (seed, name, index))
                elements = {element_of(drawn.job, drawn, place) for place in found}
                self.assertEqual(elements, {numbers[at]}, (seed, name, index))
                asked += 1
        self.assertGreater(asked, 50)

    # ---- copies

    def test_copies_are_judged(self):
        moved = transferred(planner="p2p")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "layouts"
            path.write_text(moved.layouts)
            lines = reshard.command("plan", "--requests", str(path), "--planner", "p2p", "--emit",
                                    "copies").splitlines()  # fmt: skip
            right = moved.check(lines)
            self.assertEqual((right["findings"], right["copies"]), ([], len(lines)))
            self.assertEqual(moved.check(map(json.loads, lines))["findings"], [])
            path.write_text('{"reshard_check": 1}\n' + "\n".join(lines))
            self.assertEqual(moved.check(path)["findings"], [])
            self.assertIn("cost", moved.check(path, topology="dgx-h100:2"))
            # From the other rank of its stage.
            wrong = list(map(json.loads, lines))
            index, copy = next((i, each) for i, each in enumerate(wrong)
                               if each["from"]["tensor"].endswith("0.self_attn.o_proj.weight"))
            copy["from"]["rank"] ^= 1
            with self.assertRaisesRegex(reshard.Findings, "^copies.jsonl: ") as found:
                moved.check(wrong)
            lines_named = [line for each in json.loads(found.exception.text)["findings"]
                           for line in each["lines"]]  # fmt: skip
            self.assertIn(index + 1, lines_named)
            path.write_text('{"reshard_check": 1}\n' + "".join(json.dumps(w) + "\n" for w in wrong))
            with self.assertRaises(reshard.Findings) as found:
                moved.check(path)
            lines_named = [line for each in json.loads(found.exception.text)["findings"]
                           for line in each["lines"]]  # fmt: skip
            self.assertIn(index + 2, lines_named)
        with self.assertRaises(reshard.Findings):
            moved.check(lines[:-1])
        with self.refused("copies.jsonl:2: "):
            moved.check([lines[0], {"from": 7}])
        with self.refused("copies: expected "):
            moved.check([7])
        with self.refused("copies: expected "):
            moved.check({})
        with self.refused("copies: expected a file that can be read"):
            moved.check("nothing.copies")

    # ---- runs

    def test_drawn_models_move_in_this_process(self):
        moved = 0
        for seed in SEEDS:
            drawn = DrawnTransfer(seed)
            self.assertEqual(drawn.unlisted(), set())
            ranks = drawn.transfer.plan.ranks
            after = {rank: drawn.destination(rank) for rank in ranks}
            drawn.transfer.execute_all({rank: drawn.source(rank) for rank in ranks}, after)
            for rank in ranks:
                expected = drawn.expected(rank)
                self.assertEqual(set(after[rank]), set(expected))
                for name, held in after[rank].items():
                    self.assertEqual(held, expected[name], (seed, rank, name))
                    moved += len(held) - held.count(PADDING)
        self.assertGreater(moved, 20000)

    def test_every_rank_runs_its_part(self):
        drawn = DrawnTransfer(SEEDS[0], planner="packed")
        plan = drawn.transfer.plan
        sources = {rank: drawn.source(rank) for rank in plan.ranks}
        after = {rank: drawn.destination(rank) for rank in plan.ranks}
        run_all(plan, sources, after)
        self.assertEqual(after, {rank: drawn.expected(rank) for rank in plan.ranks})

    def test_buffers_that_do_not_fit_are_refused(self):
        moved = transferred()
        with self.refused("sources: expected ranks of the transfer, found 12"):
            moved.execute_all({12: {}}, {})
        with self.refused("destinations: expected a dict of buffers by rank"):
            moved.execute_all({}, [])
        with self.refused("source: expected the buffer "):
            moved.execute(0, None, None)
        self.assertEqual({each.rank for each in moved.buffers("from", 2)}, {2})
