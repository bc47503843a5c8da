#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Whole-program runs against files that say what must come out.

One scenario a file, NAME.golden:

    # what it shows
    --- file cyclic.jsonl          (any number: written before the run)
    ...
    --- run                        (a bash script; `reshard` is the program under test, `traces`
                                    the shipped traces)
    reshard replay cyclic.jsonl
    --- exit 2
    --- stdout
    --- stderr
    reshard: error: ...
    --- left                       (files that the run left behind, one a line)

Each runs in an empty directory of its own. `--update` rewrites what came out; read the diff before
you accept it.
"""

import argparse
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import built  # noqa: E402
from timeless import timeless  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
TIME_LIMIT_S = 300


def read(path):
    """The comment, the input files, the script, and the expected parts of a scenario."""
    comment, files, parts, current = [], {}, {}, None
    for line in path.read_bytes().decode().split("\n"):
        marker = re.fullmatch(r"--- (file (\S+)|run|exit (\d+)|stdout|stderr|left)", line)
        if marker is None:
            (comment if current is None else current).append(line)
        elif marker[2]:
            current = files.setdefault(marker[2], [])
        elif marker[3]:
            parts["exit"], current = int(marker[3]), []
        else:
            current = parts.setdefault(line[4:], [])
    text = lambda lines: "".join(
        l + "\n" for l in (lines[:-1] if lines and lines[-1] == "" else lines)
    )
    expected = {key: value if key == "exit" else text(value) for key, value in parts.items()}
    return text(comment), {name: text(lines) for name, lines in files.items()}, expected


def write(path, comment, files, parts):
    out = [comment]
    for name, text in files.items():
        out += [f"--- file {name}\n", text]
    out += [
        "--- run\n",
        parts["run"],
        f"--- exit {parts['exit']}\n",
        "--- stdout\n",
        parts["stdout"],
        "--- stderr\n",
        parts["stderr"],
    ]
    if parts.get("left"):
        out += ["--- left\n", parts["left"]]
    path.write_bytes("".join(out).encode())


def run(reshard, files, script):
    with tempfile.TemporaryDirectory() as folder:
        base = pathlib.Path(folder)
        work, programs = base / "work", base / "bin"
        work.mkdir()
        programs.mkdir()
        (programs / "reshard").symlink_to(reshard)
        (work / "traces").symlink_to(built.ROOT / "traces")
        for name, text in files.items():
            (work / name).write_text(text)
        environment = {
            "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin",
            "HOME": folder,
            "LC_ALL": "C.UTF-8",
        }
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            if name in os.environ:
                environment[name] = os.environ[name]
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIME_LIMIT_S,
        )
        left = sorted(p.name for p in work.iterdir() if p.name not in files and p.name != "traces")
        result = {
            "exit": done.returncode,
            "stdout": timeless(done.stdout.decode()),
            "stderr": timeless(done.stderr.decode()),
            "left": "".join(n + "\n" for n in left),
        }
        return result


def differences(expected, got):
    out = []
    if expected.get("exit") != got["exit"]:
        out.append(f"exit code: expected {expected.get('exit')}, found {got['exit']}\n")
    for key in ("stdout", "stderr", "left"):
        out += difflib.unified_diff(
            expected.get(key, "").splitlines(True),
            got[key].splitlines(True),
            f"expected {key}",
            f"found {key}",
            n=2,
        )
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reshard", default=built.RESHARD, type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--without", action="append", default=[], help="a scenario to leave out")
    parser.add_argument("names", nargs="*", help="scenarios; all without")
    arguments = parser.parse_args()
    reshard = pathlib.Path(shutil.which(arguments.reshard) or "").resolve()
    if not reshard.is_file():
        sys.exit(f"golden: no program {arguments.reshard}")
    paths = sorted(HERE.glob("*.golden"))
    if arguments.names:
        paths = [p for p in paths if p.stem in arguments.names]
    paths = [p for p in paths if p.stem not in arguments.without]
    failed = 0
    for path in paths:
        comment, files, expected = read(path)
        try:
            got = run(reshard, files, expected["run"])
        except subprocess.TimeoutExpired:
            got = {
                "exit": -1,
                "stdout": "",
                "stderr": f"no end after {TIME_LIMIT_S} s\n",
                "left": "",
            }
        found = differences(expected, got)
        if found and arguments.update:
            write(path, comment, files, {**got, "run": expected["run"]})
            print(f"updated {path.name}")
        elif found:
            failed += 1
            print(f"FAILED {path.name}\n" + "".join(found))
    print(f"golden: {len(paths) - failed} scenarios as expected, {failed} not")
    return 1 if failed or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
