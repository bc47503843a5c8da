#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs README.md's first Python lines, as far as they need no PyTorch, with only what tools/demo.sh
builds: the files of its targets, copied from a build tree into a separate tree.

    check_demo.py --build BUILD
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import built  # noqa: E402


def targets_of_demo():
    script = (built.ROOT / "tools/demo.sh").read_text()
    (line,) = re.findall(r"^build_preset release (.*)$", script, re.MULTILINE)
    return line.split()


def files_of(build, target):
    """A target that is no file stands for those that ninja lists as its inputs."""
    said = subprocess.run(["ninja", "-C", build, "-t", "query", target], capture_output=True,
                          text=True, check=True).stdout  # fmt: skip
    inputs = re.search(r"input: phony\n((?:    .*\n)*)", said)
    return inputs[1].split() if inputs else [target]


def python_lines():
    block = re.search(r"```python\n(.*?)```", (built.ROOT / "README.md").read_text(), re.DOTALL)[1]
    return [line for line in block.splitlines() if "reshard.torch" not in line]


def main():
    argparse.ArgumentParser(description=__doc__.split("\n\n")[0]).parse_args()
    if shutil.which("ninja") is None or not (built.BUILD / "build.ninja").exists():
        print("demo: skipped, the tree was not built by ninja")
        return built.SKIPPED
    with tempfile.TemporaryDirectory() as top:
        release = pathlib.Path(top, "build", "release")
        release.mkdir(parents=True)
        for target in targets_of_demo():
            for name in files_of(built.BUILD, target):
                # The link by which it is found stands beside a library.
                for path in built.BUILD.glob(name + "*"):
                    shutil.copy(path, release / path.name)
                if (built.BUILD / name).suffix.lstrip(".").isdigit():
                    stem = re.sub(r"(\.so\.\d+).*", r"\1", name)
                    shutil.copy(built.BUILD / stem, release / stem)
        shutil.copytree(built.ROOT / "tools/python", pathlib.Path(top, "tools", "python"))
        lines = "\n".join(["import reshard", *python_lines(), "print(plan.time_ps)"])
        environment = {name: os.environ[name] for name in os.environ if "RESHARD" not in name}
        environment["PYTHONPATH"] = os.path.join(top, "tools", "python")
        done = subprocess.run([sys.executable, "-c", lines], env=environment, cwd=top,
                              capture_output=True, text=True)  # fmt: skip
        if done.returncode != 0 or int(done.stdout) <= 0:
            sys.exit(f"demo: README.md's lines do not run: {done.stderr}")
        if not pathlib.Path(top, "plan.html").read_text().startswith("<!DOCTYPE html>"):
            sys.exit("demo: no page was written")
    print(f"demo: {len(python_lines())} lines of README.md run on what it builds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
