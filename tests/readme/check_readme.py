#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Keeps README.md and the pages of docs/ true: runs every `$ reshard ...` of their console blocks
and compares the text below it with the output. A line may pipe an adapter into reshard:
`$ python3 -m reshard.adapters.NAME FILES | reshard check -`.

    check_readme.py --reshard PROGRAM [--update]

The table of options must have those of the program, with all their values. A picture
below `<!-- SECTION of: reshard ... --html - -->` must be that of the page's section. Also checks
that links lead to files and that README.md stays under 200 lines.
"""

import argparse
import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import built  # noqa: E402

BLOCK = re.compile(
    r"^```console\n\$ ((?:reshard|python3 -m reshard\.adapters\.\w+) [^\n]*)\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)

PICTURE = re.compile(r"^<!-- (\w+) of: (reshard [^>]*) -->\n!\[[^\]]*\]\(([^)]+)\)$", re.MULTILINE)


def picture_of(reshard, command, section):
    page = output_of(reshard, command)
    found = re.search(rf'<section id="{section}">.*?(<svg.*?</svg>)', page, re.DOTALL)
    return found[1] + "\n" if found else ""


def lines_of(reshard, words):
    """What an adapter prints, with the library beside the program."""
    done = subprocess.run(
        [sys.executable, "-B", *words],
        cwd=built.ROOT,
        env={
            "RESHARD_LIBRARY": str(reshard.parent / "libreshard.so.0"),
            **os.environ,
            "PYTHONPATH": str(built.ROOT / "tools/python"),
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode != 0 or done.stderr:
        sys.exit(f"readme: '{' '.join(words)}' ends with {done.returncode}: {done.stderr}")
    return done.stdout


def output_of(reshard, command):
    words, given = shlex.split(command), ""
    if "|" in words:
        first, words = words[1 : words.index("|")], words[words.index("|") + 1 :]
        given = lines_of(reshard, first)
    done = subprocess.run(
        [reshard, *words[1:]],
        cwd=built.ROOT,
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
    )
    # A busy machine says how far it is.
    said = [line for line in done.stderr.splitlines() if " s so far" not in line]
    holds = done.returncode == 0 and not said
    if not holds and done.returncode != 1:  # a check that does not hold says so
        sys.exit(f"readme: '{command}' ends with {done.returncode}: {done.stderr}")
    return done.stdout + "".join(line + "\n" for line in said)


def faults_of(page, text):
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        if not (page.parent / link).exists():
            yield f"{page.name} links to {link}, which is not there\n"
    for name in re.findall(r"`((?:tools|tests|traces|core|sim|docs)/[\w./-]*\w)`", text):
        if "NAME" not in name and not (built.ROOT / name).exists():
            yield f"{page.name} names {name}, which is not there\n"
    if page.name == "README.md" and text.count("\n") >= 200:
        yield f"README.md has {text.count(chr(10))} lines, fewer than 200 wanted\n"


# Options whose rows of the table of options name every value, and commands that have them.
REQUEST = ["--mesh", "2", "--shape", "2", "--from", "R", "--to", "R"]
VALUES = [["plan", *REQUEST, "--planner"], ["plan", *REQUEST, "--transport"],
          ["plan", *REQUEST, "--emit"], ["validate", *REQUEST, "--backend"],
          ["topo", "convert", "dgx-a100", "--to"], ["topo", "show", "dgx-a100", "--emit"],
          ["replay", "traces/mlp-tp.jsonl", "--format"],
          ["replay", "traces/mlp-tp.jsonl", "--communicators"],
          ["replay", "traces/mlp-tp.jsonl", "--data"]]  # fmt: skip


def option_faults(reshard):
    """Between the table of options and the program, which is asked for its options and values."""
    table = (built.ROOT / "docs/commands.md").read_text().split("\n## Options\n")[1]
    rows = re.findall(r"^\| (`-.*?`) \| (.*)$", table.split("\n## ")[0], re.MULTILINE)
    told = {name for options, _ in rows for name in re.findall(r"--[\w-]+", options)}
    completion = output_of(reshard, "reshard completion bash")
    there = set(re.findall(r"--[\w-]+", " ".join(re.findall('words="(.*?)"', completion))))
    for name in sorted(told ^ (there - {"--help", "--help-all", "--version"})):
        yield f"commands.md has {name} in its options, or the program, and not both\n"
    for command in VALUES:
        texts = " ".join(text for options, text in rows if f"`{command[-1]}`" in options)
        for value in built.values_of(reshard, *command):
            if f"`{value}`" not in texts:
                yield f"commands.md: the row of {command[-1]} does not name {value}\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reshard", default=built.RESHARD, type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    reshard = arguments.reshard.resolve()
    commands, problems = 0, []
    for page in [built.ROOT / "README.md", *sorted((built.ROOT / "docs").rglob("*.md"))]:
        old = page.read_text()
        commands += len(BLOCK.findall(old))
        new = BLOCK.sub(
            lambda block: f"```console\n$ {block[1]}\n{output_of(reshard, block[1])}```", old
        )
        if arguments.update:
            page.write_text(new)
        problems += difflib.unified_diff(
            old.splitlines(True), new.splitlines(True), page.name, "what the commands print"
        )
        problems += faults_of(page, old)
        for section, command, link in PICTURE.findall(old):
            drawn = picture_of(reshard, command, section)
            if arguments.update:
                (page.parent / link).write_text(drawn)
            if (page.parent / link).read_text() != drawn:
                problems.append(f"{page.name}: {link} is not what '{command}' draws\n")
    problems += option_faults(reshard)
    if commands < 4:
        problems.append(f"expected the output of at least four commands, found {commands}\n")
    if arguments.update:
        return 0
    print("".join(problems) if problems else f"readme: {commands} commands print what pages say")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
