# SPDX-License-Identifier: BSD-3-Clause
"""Runs the steps of docs/ci/action.yml in bash, with the program's commands from this tree, and
reads the other YAML of docs/ci.md."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import reshard

try:
    import yaml
except ImportError:
    yaml = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
REQUEST = "--mesh 2x2 --shape 64,64 --from 'RS(0)' --to 'S(1)R' --topology dgx-h100"


@unittest.skipIf(yaml is None, "no PyYAML")
@unittest.skipIf(shutil.which("bash") is None, "no bash")
class ActionTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        program = self.folder / "reshard"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -B -m reshard "$@"\n')
        program.chmod(0o755)
        self.action = yaml.safe_load((ROOT / "docs/ci/action.yml").read_text(encoding="utf-8"))

    def step(self, name, **given):
        """Runs a step as GitHub does: its variables filled in, in a bash that fails early."""
        inputs = {key: each["default"] for key, each in self.action["inputs"].items()}
        inputs.update({key.replace("_", "-"): each for key, each in given.items()})
        (step,) = [each for each in self.action["runs"]["steps"] if each.get("name") == name]
        values = {key: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: inputs[found[1]], text)
                  for key, text in step["env"].items()}  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools/python"), **values}
        environment["PATH"] = f"{self.folder}:{os.environ['PATH']}"
        return subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c",
                               step["run"]], cwd=self.folder, env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip

    def test_inputs_are_those_that_steps_use(self):
        text = (ROOT / "docs/ci/action.yml").read_text(encoding="utf-8")
        used = set(re.findall(r"inputs\.([\w-]+)", text))
        self.assertEqual(used, set(self.action["inputs"]))
        (block, _) = re.findall(r"```yaml\n(.*?)```", self.page(), re.DOTALL)
        (use,) = [each for each in yaml.safe_load(block)["jobs"]["reshard"]["steps"]
                  if "with" in each]  # fmt: skip
        self.assertLessEqual(set(use["with"]), used)

    def page(self):
        return (ROOT / "docs/ci.md").read_text(encoding="utf-8")

    def test_all_files_are_judged(self):
        wrong = ROOT / "traces/checks/qkv.copies"
        right = self.folder / "right.copies"
        lines = wrong.read_text(encoding="utf-8").splitlines(True)
        copies = reshard.command("plan", "--requests", str(wrong), "--emit", "copies")
        right.write_text("".join(line for line in lines if '"rank"' not in line) + copies)
        done = self.step("Judge copies", check="right.copies")
        self.assertEqual(done.returncode, 0, done.stdout)
        done = self.step("Judge copies", check=f"{wrong}\nright.copies", topology="dgx-h100")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("4 findings", done.stdout)
        self.assertIn("proved", done.stdout)
        results = sorted(path.name for path in (self.folder / "reshard-results").iterdir())
        self.assertIn("right.copies.json", results)
        self.assertEqual(len(results), 4)

    def test_a_plan_is_compared(self):
        compared = "Compare with the baseline"
        done = self.step(compared, request=f"{REQUEST} --planner p2p", results="before")
        self.assertEqual(done.returncode, 0, done.stdout)
        given = {"baseline": "before/report.json", "fail_on": "bytes>0"}
        done = self.step(compared, request=f"{REQUEST} --planner p2p", **given)
        self.assertEqual(done.returncode, 0, done.stdout)
        done = self.step(compared, request=f"{REQUEST} --planner rule", **given)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertTrue((self.folder / "reshard-results/compare.txt").read_text())
        done = self.step(compared, request="--mesh", **given)
        self.assertNotEqual(done.returncode, 0)

    def test_gitlab(self):
        block = re.findall(r"```yaml\n(.*?)```", self.page(), re.DOTALL)[1]
        script = yaml.safe_load(block)["reshard"]["script"]
        self.assertTrue(all(isinstance(line, str) for line in script))
        for line in script[1:]:
            self.assertRegex(line, r"^reshard (check|simulate|compare) ")
