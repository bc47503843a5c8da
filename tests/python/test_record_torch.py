# SPDX-License-Identifier: BSD-3-Clause
"""The recorder, as far as it works without PyTorch, and the traces that it has recorded."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS, RECORDED = ROOT / "tools" / "traces", ROOT / "traces" / "torch"
sys.path.insert(0, str(TOOLS))

from torch_recorder.document import Document, flat, without_trailing, write_whole  # noqa: E402


def call(name, inputs, out):
    return {"op": "call", "call": name, "in": inputs, "out": out}


class Documents(unittest.TestCase):
    def test_each_name_is_given_once(self):
        document = Document()
        names = [document.name("w"), document.name("w"), document.fresh("t"), document.fresh("t")]
        self.assertEqual(names, ["w", "w.2", "t1", "t2"])

    def test_fresh_names_pass_over_those_of_parameters(self):
        document = Document()
        document.name("t1")
        self.assertEqual(len({"t1", document.fresh("t"), document.fresh("t")}), 3)

    def test_meshes_of_the_header(self):
        document = Document("dgx-h100")
        self.assertEqual(document.mesh((2, 2), ("dp", "tp"), range(4)), "dp_tp")
        self.assertEqual(document.mesh((2,), ("tp",), [0, 1]), "tp")
        self.assertEqual(document.mesh((2,), ("tp",), [2, 3]), "tp.2")
        self.assertEqual(document.mesh((4,), None, range(4)), "mesh")
        self.assertEqual(document.mesh((2,), ("tp",), [0, 1]), "tp")
        meshes = {
            "dp_tp": "dp=2,tp=2",
            "tp": "tp=2",
            "tp.2": {"mesh": "tp=2", "ranks": [2, 3]},
            "mesh": "4",
        }
        wanted = {"reshard_trace": 1, "topology": "dgx-h100", "meshes": meshes}
        self.assertEqual(document.header(), wanted)
        document.recorded = {"torch": "2.15.0", "device": "cpu", "devices_per_host": 1}
        self.assertEqual(document.header(), {**wanted, "recorded": document.recorded})

    def test_limits_of_indices_come_from_their_uses(self):
        document = Document()
        document.tensor("i", dtype="i64", below=7, guessed=True)
        document.call(call("view", ["i"], ["flat"]))
        document.call(call("add.Tensor", ["i", "i"], ["sum"]))
        document.limit("flat", 32)  # replaces a guess, be it smaller
        document.limit("sum", 3)  # other numbers than i's
        document.limit("i", 40)
        line = list(document.lines())[1]
        self.assertEqual((line["below"], "guessed" in line), (32, False))

    def test_floats_have_no_limit(self):
        document = Document()
        document.tensor("x", dtype="f32")
        document.limit("x", 4)
        self.assertNotIn("below", list(document.lines())[1])

    def test_lists(self):
        self.assertEqual(flat(["a", ["b", None], None]), ["a", "b", None, None])
        self.assertEqual(without_trailing([None, 1, None, None]), [None, 1])

    def test_a_file_is_replaced_as_a_whole(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "t.jsonl"
            path.write_text("old")
            write_whole(path, "new\n")
            self.assertEqual((path.read_text(), os.listdir(folder)), ("new\n", ["t.jsonl"]))
            self.assertEqual(path.stat().st_mode & 0o111, 0)


class Program(unittest.TestCase):
    def run_recorder(self, *arguments, **environment):
        command = [sys.executable, "-B", str(TOOLS / "record_torch.py"), *arguments]
        given = {**os.environ, **environment}
        return subprocess.run(command, capture_output=True, text=True, env=given)

    def test_without_pytorch_one_sentence(self):
        with tempfile.TemporaryDirectory() as folder:
            broken = pathlib.Path(folder) / "torch"
            broken.mkdir()
            (broken / "__init__.py").write_text("raise ImportError")
            run = self.run_recorder(__file__, PYTHONPATH=folder)
        self.assertEqual((run.returncode, run.stdout, run.stderr.count("\n")), (2, "", 1))
        self.assertIn("PyTorch", run.stderr)

    def test_wrong_options(self):
        for wrong in (["none.py"], ["--world", "0", __file__], ["--steps", "3-2", __file__]):
            run = self.run_recorder(*wrong)
            self.assertEqual((run.returncode, run.stdout), (2, ""), wrong)


SCRIPT = """
import sys
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

mesh = init_device_mesh("cpu", (4,), mesh_dim_names=("tp",))


def heads(count):
    placed = distribute_tensor(torch.randn(2, count, 16, 8), mesh, [Shard(1)])
    return placed.requires_grad_()


if sys.argv[1] == "grouped":
    groups, given = 4, {"is_causal": True, "enable_gqa": True}
else:
    mask = torch.ones(16, 16, dtype=torch.bool).tril()
    groups, given = 8, {"attn_mask": distribute_tensor(mask, mesh, [Replicate()])}
attend = torch.nn.functional.scaled_dot_product_attention
attend(heads(8), heads(groups), heads(groups), **given).sum().backward()
"""


def has_torch():
    """A folder of that name beside this file has no origin."""
    found = importlib.util.find_spec("torch")
    return found is not None and found.origin is not None


@unittest.skipUnless(has_torch(), "needs PyTorch")
class WithTorch(unittest.TestCase):
    """Attention on a CPU, as a GPU's kernels would have it."""

    def recorded(self, script, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            path, out = pathlib.Path(folder) / "script.py", pathlib.Path(folder) / "t.jsonl"
            path.write_text(script)
            command = [sys.executable, "-W", "ignore", "-B", str(TOOLS / "record_torch.py")]
            command += ["--expect", "--output", str(out), str(path), *arguments]
            subprocess.run(command, capture_output=True, check=True, timeout=500)
            header, *lines = map(json.loads, out.read_text().splitlines())
        return header, [line for line in lines if line["op"] == "call"]

    def attention(self, kind):
        header, calls = self.recorded(SCRIPT, kind)
        self.assertEqual(header["recorded"]["device"], "cpu")
        self.assertEqual(header["recorded"]["devices_per_host"], 1)
        return [call for call in calls if "attention" in call["call"]]

    def test_grouped_heads_that_are_causal(self):
        forward, backward = self.attention("grouped")
        self.assertEqual(forward["call"], "_scaled_dot_product_flash_attention")
        self.assertEqual(forward["attr"], {"is_causal": True, "scale": 8**-0.5})
        self.assertEqual(forward["expect"]["in"], ["S(1)"] * 3)
        self.assertEqual(forward["expect"]["out"][:2], ["S(1)", "S(1)"])
        self.assertEqual(backward["call"], forward["call"] + "_backward")
        self.assertEqual(backward["expect"]["out"], ["S(1)"] * 3)

    def test_a_mask_is_a_bias_of_all_scores(self):
        forward, backward = self.attention("masked")
        self.assertEqual(forward["call"], "_scaled_dot_product_efficient_attention")
        self.assertEqual(forward["expect"]["in"], ["S(1)"] * 4)
        self.assertEqual(backward["call"], forward["call"] + "_backward")
        self.assertEqual(backward["attr"]["grad_input_mask"], [True, True, True, False])


class Recorded(unittest.TestCase):
    """What every reader may count on."""

    def check(self, path):
        header, *lines = map(json.loads, path.read_text().splitlines())
        known = set()
        for line in lines:
            if line["op"] == "tensor":
                self.assertNotIn(line["tensor"], known)
                self.assertIn(line["mesh"], header["meshes"])
                known.add(line["tensor"])
            elif line["op"] == "redistribute":
                self.assertIn(line["tensor"], known)
                self.assertNotIn(line["out"], known)
                known.add(line["out"])
            elif line["op"] == "call":
                inputs = flat(line["in"])
                self.assertLessEqual({name for name in inputs if name}, known)
                made = {name for name in line["out"] if name}
                self.assertFalse(made & known - set(inputs), line)
                self.assertEqual(len(line["expect"]["out"]), len(line["out"]), line)
                chosen = without_trailing(inputs)
                self.assertEqual(
                    [name is None for name in chosen], [p is None for p in line["expect"]["in"]]
                )
                known |= made
            else:
                self.assertEqual(line["op"], "collective")
        return lines

    def test_traces(self):
        counts = json.loads((RECORDED / "expected_counts.json").read_text())
        paths = sorted(RECORDED.glob("*.jsonl"))
        self.assertEqual({path.stem for path in paths}, set(counts))
        calls = 0
        for path in paths:
            with self.subTest(path.stem):
                lines = self.check(path)
                calls += sum(1 for line in lines if line["op"] == "call")
                self.assertLess(path.stat().st_size, 60_000)
        self.assertGreater(calls, 1800)

    def test_collectives_of_fsdp_are_counted_once_a_rank(self):
        counts = json.loads((RECORDED / "expected_counts.json").read_text())
        for name in ("fsdp2", "hsdp"):
            for rank in range(4):
                met = {each: {} for each in ("forward", "backward", "optimizer")}
                for text in (RECORDED / f"{name}.jsonl").read_text().splitlines()[1:]:
                    line = json.loads(text)
                    if rank in line["ranks"]:
                        kinds = met[line.get("pass", "forward")]
                        kinds[line["kind"]] = kinds.get(line["kind"], 0) + 1
                self.assertEqual(met, counts[name])


if __name__ == "__main__":
    unittest.main()
