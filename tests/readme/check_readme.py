#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Keeps README.md true: runs every `$ reshard ...` of its console blocks and compares what stands
below with what comes out.

    check_readme.py --reshard PROGRAM [--update]

Also checks that its links lead to files and that it stays under 300 lines.
"""

import argparse
import difflib
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BLOCK = re.compile(r"^```console\n\$ (reshard [^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def output_of(reshard, command):
    words = shlex.split(command)
    done = subprocess.run(
        [reshard, *words[1:]],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode != 0 or done.stderr:
        sys.exit(f"readme: '{command}' ends with {done.returncode}: {done.stderr}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reshard", required=True, type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    page = ROOT / "README.md"
    old = page.read_text()
    blocks = BLOCK.findall(old)
    if len(blocks) < 4:
        sys.exit(f"readme: expected the output of at least four commands, found {len(blocks)}")
    reshard = arguments.reshard.resolve()
    new = BLOCK.sub(
        lambda block: f"```console\n$ {block[1]}\n{output_of(reshard, block[1])}```", old
    )
    if arguments.update:
        page.write_text(new)
        return 0
    problems = list(
        difflib.unified_diff(
            old.splitlines(True), new.splitlines(True), "README.md", "what the commands print"
        )
    )
    problems += [
        f"README.md links to {link}, which is not there\n"
        for link in re.findall(r"\]\(([^)#:]+)\)", old)
        if not (ROOT / link).exists()
    ]
    problems += [
        f"README.md names {name}, which is not there\n"
        for name in re.findall(r"`((?:tools|tests|traces|core|sim)/[\w./-]*\w)`", old)
        if "NAME" not in name and not (ROOT / name).exists()
    ]
    if old.count("\n") >= 300:
        problems.append(f"README.md has {old.count(chr(10))} lines, fewer than 300 wanted\n")
    print(
        "".join(problems)
        if problems
        else f"readme: {len(blocks)} commands print what the page says"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
