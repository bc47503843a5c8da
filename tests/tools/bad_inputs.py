#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Random bad inputs from a seed, for all commands, formats and options: wrong types, huge numbers,
truncated and doubled lines, links, full disks, limits of memory and file size, signals.

    bad_inputs.py --reshard PROGRAM [--count 1000] [--seed 1]

A run may succeed or refuse. It must not crash, exit with 3 (a bug), print a negative number, be
silent for 20 s, or leave a partial file or a file that was not named.
"""

import argparse
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import built  # noqa: E402

SILENT_S = 20
REQUEST = ["--mesh", "2x2", "--shape", "8,6", "--from", "S(0)R", "--to", "RS(1)"]
COMMANDS = [
    ["plan", *REQUEST, "--explain"],
    ["plan", *REQUEST, "--emit", "plan"],
    ["plan", *REQUEST, "--emit", "alltoallv-matrix"],
    ["plan", "--mesh", "4", "--to-mesh", "3", "--to-ranks", "4-6", "--shape", "9", "--from",
     "S(0)", "--to", "S(0)", "--json"],
    ["simulate", *REQUEST, "--topology", "my.topo", "--perfetto", "out.json"],
    ["simulate", "--plan", "my.plan", "--perfetto", "out.json", "-v"],
    ["simulate", *REQUEST, "--dtype", "bf16", "--memory-limit", "1GiB", "--data-budget", "1MiB"],
    ["validate", *REQUEST, "--measurements", "out.jsonl", "--iterations", "2"],
    ["validate", "--plan", "my.plan", "--perfetto", "out.json", "--warmup", "0"],
    ["replay", "my.jsonl", "--perfetto", "out.json"],
    ["replay", "my.jsonl", "--data", "proof", "--planner", "rule", "-v"],
    ["replay", "matrix.txt", "--format", "alltoallv-matrix", "--json"],
    ["sweep", "--mesh", "2", "--shape", "4,4", "--placements", "R,S(0)", "--csv", "out.csv"],
    ["plan", *REQUEST, "--transport", "nccl", "--nccl-version", "2.28"],
    ["calibrate", "--topology", "my.topo", "--output", "out.topo", "--holdout", "n=4", "nccl.txt"],
    ["calibrate", "--topology", "a100-quad", "--compare", "--json", "nccl.txt"],
    ["topo", "show", "my.topo", "--json"],
    ["topo", "show", "dgx-h100:2"],
    ["topo", "list"],
    ["compare", "my.json", "my.json", "--html", "out.html"],
    ["ops", "sum.dim_IntList", "--mesh", "4", "--in", "S(0)", "--shape", "8,4", "--attr",
     "dim=[0]"],
    ["completion", "bash"],
]  # fmt: skip
VALUES = ["", " ", "-", "--", "-1", "0", "1e9", "0x10", "nan", "99999999999999999999",
    "9223372036854775807", "4611686018427387904", "1048576", "1048577", "2x2x2x2x2x2", "1024x1024",
    "4611686018427387904,2", "S(0)", "S(9)", "_S(0,0)", "_S(0,8)S(0)", "P(avg)", "S(0)[1]S(0)[0]",
    "R" * 300, "(" * 200, "[" * 200 + "]" * 200, "é∞", "a\tb", "0-1048575", "3-0", "/", "..",
    ".", "/dev/null", "/dev/full", "loop", "no/such/file", "locked", "out.json", "8EiB", "1.5",
    "auto",
    "dgx-h100:131073", "pcie-8x3090:0", "f8", "bool", "[" * 60_000, '{"a":' * 20_000, "010",
    "18446744073709551615", "18446744073709551616", "-9223372036854775809", "x" * 60_000, "\u202e",
    "[[0,1],[1,0]]", "DeviceMesh((2,), 'cuda')",
    "torch.Size([8, 6])", "my.jsonl", "my.plan", "my.topo"]  # fmt: skip
NUMBERS = ["-1", "0", "1", "3", "4611686018427387904", "18446744073709551615", "[" * 60_000,
    "9223372036854775808", "99999999999999999999", "1e308", "0.5", "x"]  # fmt: skip
FILES = ("my.jsonl", "my.plan", "my.topo", "matrix.txt", "nccl.txt", "my.json")
# An error in percent may be negative.
NEGATIVE = re.compile(r"(?<![\w.,:\[(/'\"+-])-\d(?![\d.]* %)")


def good_files(reshard, folder):
    write = lambda name, *words: (folder / name).write_text(
        subprocess.run([reshard, *words], capture_output=True, text=True, check=True).stdout
    )
    write("my.plan", "plan", *REQUEST, "--planner", "p2p", "--emit", "plan")
    write("my.topo", "topo", "show", "dgx-h100", "--emit", "topology")
    write("my.json", "simulate", *REQUEST, "--json")
    write("matrix.txt", "plan", *REQUEST, "--emit", "alltoallv-matrix")
    (folder / "nccl.txt").write_text(
        "./all_reduce_perf -g 2\n# nThread 1 nGpus 2\n1024 256 float sum -1 9.6 0.11 0.11\n"
        "16777216 4194304 float sum -1 285.5 58.77 58.77\n./all_gather_perf -g 4\n"
        "# nThread 2 nGpus 2\n1024 256 float none -1 10 0.1 0.08\n"
        "4194304 1048576 float none -1 57.4 73.1 54.8\n"
    )
    (folder / "my.jsonl").write_text(
        '{"reshard_trace": 1, "topology": "nvswitch:4", "meshes": {"m": "2x2"}}\n'
        '{"op": "redistribute", "id": "a", "shape": [8, 6], "dtype": "f32", "from": "S(0)R", '
        '"to": "RS(1)", "mesh": "m"}\n'
        '{"op": "compute", "after": ["a"], "ranks": "0-1", "duration": "3us"}\n'
        '{"op": "send", "rank": 0, "peer": 3, "bytes": 4096, "tag": 1}\n'
        '{"op": "recv", "rank": 3, "peer": 0, "bytes": 4096, "tag": 1}\n'
        '{"op": "collective", "kind": "all_reduce", "ranks": "0-3", "bytes": 65536}\n'
    )


def broken_text(draw, text):
    lines = text.splitlines(True)
    at = draw.randrange(len(lines))
    how = draw.randrange(9)
    if how == 0:
        return text[: draw.randrange(len(text))]
    if how == 1:
        lines.insert(at, lines[at])
    elif how == 2:
        del lines[at]
    elif how == 3:
        lines[at] = re.sub(r"\d+", lambda _: draw.choice(NUMBERS), lines[at], count=1)
    elif how == 4:
        byte = draw.randrange(len(text))
        return text[:byte] + chr(draw.randrange(1, 256)) + text[byte + 1 :]
    elif how == 5:
        return "\ufeff" + text.replace("\n", "\r\n")
    elif how == 6:
        lines[at] = lines[at].rstrip("\n") + draw.choice(VALUES) + "\n"
    elif how == 7:
        draw.shuffle(lines)
    else:
        lines[at] = lines[at][: draw.randrange(len(lines[at]))] + "\n"
    return "".join(lines)


def broken_words(draw, words):
    words = list(words)
    for _ in range(draw.choice((1, 1, 2))):
        at = draw.randrange(len(words))
        how = draw.randrange(5)
        if how == 0:
            del words[at]
        elif how == 1:
            words.insert(at, words[at])
        elif how == 2:
            more = ["--json", "-v", "--frobnicate", "--device", "--planner=rule"]
            words.append(draw.choice(more))
        else:
            words[at] = draw.choice(VALUES)
        if not words:
            return []
    return words


class Case:
    """One drawn run: its words, files and limits."""

    def __init__(self, seed, number):
        draw = random.Random(f"{seed}/{number}")
        self.words = list(draw.choice(COMMANDS))
        self.broken, self.limits, self.kill_s = None, {}, None
        how = draw.randrange(8)
        if how < 4:
            self.words = broken_words(draw, self.words)
        elif how < 6:
            used = [name for name in FILES if name in self.words]
            self.broken = (draw.choice(used or FILES), draw.random())
        elif how == 6:
            name, low, high = draw.choice(
                [(resource.RLIMIT_AS, 20 << 20, 200 << 20), (resource.RLIMIT_FSIZE, 0, 20_000)]
            )
            self.limits = {name: draw.randrange(low, high)}
        else:
            self.kill_s = draw.uniform(0.001, 0.03)
            self.signal = draw.choice((signal.SIGINT, signal.SIGTERM, signal.SIGKILL))
        self.output = draw.choice((None, None, None, "/dev/full"))

    def __str__(self):
        return f"{self.words} broken={self.broken} limits={self.limits} kill={self.kill_s}"


def run(reshard, case, folder):
    """(exit code, standard output, standard error); None for a code: silent for too long."""

    def limit():
        for name, value in case.limits.items():
            resource.setrlimit(name, (value, value))

    stdout = open(case.output, "wb") if case.output else subprocess.PIPE
    process = subprocess.Popen(
        [reshard, *case.words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        preexec_fn=limit,
    )
    try:
        if case.kill_s is not None:
            try:
                process.wait(case.kill_s)
            except subprocess.TimeoutExpired:
                process.send_signal(case.signal)
        out, error = process.communicate(timeout=SILENT_S)
    except subprocess.TimeoutExpired as late:
        process.kill()
        process.communicate()
        return (0 if late.stderr else None), b"", late.stderr or b""
    return process.returncode, out or b"", error


def faults(case, code, out, error, folder, known):
    found = []
    for name in sorted(set(os.listdir(folder)) - known):
        if not any(name in word for word in case.words):
            found.append(f"left over: {name}")
    killed = case.kill_s is not None and code in (-case.signal, 128 + case.signal)
    if code is None:
        found.append(f"silent for {SILENT_S} s")
    elif code not in (0, 1, 2, 4) and not killed:
        found.append(f"ended with {code}")
    elif code in (1, 2, 4) and not killed and not error:
        found.append(f"ended with {code} without a word")
    if match := NEGATIVE.search(out.decode(errors="replace")):
        found.append(f"a negative number: {out.decode(errors='replace')[match.start():][:30]}")
    for name in ("out.json", "out.jsonl", "out.csv"):
        path = folder / name
        if not path.exists() or path.is_dir():
            continue
        text = path.read_text()
        try:
            if text != "old\n" and name != "out.csv":
                for part in text.splitlines() if name == "out.jsonl" else [text]:
                    json.loads(part)
            if not text.endswith("\n") and not text.endswith("}"):
                found.append(f"half a file: {name}")
        except ValueError:
            found.append(f"half a file: {name}")
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reshard", default=built.RESHARD, type=pathlib.Path)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    reshard = arguments.reshard.resolve()
    bad, codes = [], {}
    with tempfile.TemporaryDirectory() as top:
        good = pathlib.Path(top) / "good"
        good.mkdir()
        good_files(reshard, good)
        for number in range(arguments.count):
            case = Case(arguments.seed, number)
            folder = pathlib.Path(top) / "work"
            shutil.copytree(good, folder)
            (folder / "loop").symlink_to("loop")
            (folder / "locked").touch(mode=0)
            for name in ("out.json", "out.jsonl"):
                (folder / name).write_text("old\n")
            if case.broken:
                name, how = case.broken
                text = broken_text(random.Random(how), (folder / name).read_text())
                (folder / name).write_bytes(text.encode(errors="surrogateescape"))
            known = set(os.listdir(folder))
            code, out, error = run(reshard, case, folder)
            codes[code] = codes.get(code, 0) + 1
            for fault in faults(case, code, out, error, folder, known):
                bad.append(f"case {number}: {fault}: {case}\n{error.decode(errors='replace')}")
            shutil.rmtree(folder)
    print("\n".join(bad[:10]))
    ends = ", ".join(f"{count} with {code}" for code, count in sorted(codes.items(), key=str))
    print(f"bad_inputs: {arguments.count} runs ended {ends}; {len(bad)} faults")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
