#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every byte that the program prints, pinned: tables, JSON, pages, timelines, pictures, plans and
refusals of several hundred command lines and some thousand spoilt files.

outputs.txt has a line per command: the digest of its exit code, standard output and standard error.
A changed line says that an answer changed, not that it is wrong: look at both, then --update. What
an answer must be is held by other tests; this one holds what they do not look at, and that every
build prints the same (tools/check.sh runs it with Clang's).
"""

import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import built  # noqa: E402
import commands  # noqa: E402
import spoilt  # noqa: E402
from timeless import timeless  # noqa: E402

PINNED = pathlib.Path(__file__).resolve().parent / "outputs.txt"
TIME_LIMIT_S = 300


class Runner:
    def __init__(self, reshard, folder):
        self.reshard, self.folder = reshard, folder
        self.environment = {"PATH": os.environ["PATH"], "HOME": folder, "LC_ALL": "C.UTF-8"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            if name in os.environ:
                self.environment[name] = os.environ[name]

    def output(self, command):
        done = subprocess.run([self.reshard, *command], cwd=self.folder, env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=TIME_LIMIT_S)  # fmt: skip
        if done.returncode not in (0, 1, 2, 3):
            sys.exit(f"outputs: reshard {' '.join(command)} ends with {done.returncode}\n"
                     f"{done.stderr.decode()}")  # fmt: skip
        said = [timeless(out.decode(errors="surrogateescape"))
                for out in (done.stdout, done.stderr)]  # fmt: skip
        return "\n".join([str(done.returncode), *said]).encode(errors="surrogateescape")

    def digest(self, item):
        label, commands_of_it = item
        digest = hashlib.sha256()
        for command in commands_of_it:
            digest.update(self.output(command))
        return label, digest.hexdigest()[:12]


def outputs_of(reshard, every):
    """Label -> digest of every so many of the items, in their order."""
    with tempfile.TemporaryDirectory() as folder:
        inputs = commands.lay_out(built.ROOT, pathlib.Path(folder))
        runner = Runner(reshard.resolve(), folder)
        asked = commands.commands(inputs, runner.reshard)
        items = [(" ".join(words), [words]) for words in asked]
        items += spoilt.items(pathlib.Path(folder), inputs)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return dict(pool.map(runner.digest, items[::every]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--reshard", default=built.RESHARD, type=pathlib.Path)
    parser.add_argument("--update", action="store_true", help="write outputs.txt anew")
    parser.add_argument("--every", type=int, default=1, help="only every so many")
    arguments = parser.parse_args()
    found = outputs_of(arguments.reshard, arguments.every)
    if arguments.update and arguments.every == 1:
        PINNED.write_text("".join(f"{digest} {label}\n" for label, digest in found.items()))
    lines = PINNED.read_text().splitlines() if PINNED.exists() else []
    pinned = {label: digest for digest, _, label in (line.partition(" ") for line in lines)}
    changed = [label for label, digest in found.items() if pinned.get(label) != digest]
    gone = [label for label in pinned if label not in found] if arguments.every == 1 else []
    for label in changed:
        print(f"pinned {pinned.get(label, 'not')}, now {found[label]}: {label}")
    for label in gone:
        print(f"pinned, and asked no more: {label}")
    print(f"outputs: {len(found) - len(changed)} as pinned, {len(changed) + len(gone)} not")
    return 1 if changed or gone else 0


if __name__ == "__main__":
    sys.exit(main())
