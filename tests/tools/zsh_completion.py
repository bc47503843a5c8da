#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Completion in a real zsh on its own terminal: what TAB does to a line."""

import argparse
import os
import pty
import pathlib
import select
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import built  # noqa: E402

LINES = {
    "reshard si": "reshard simulate ",
    "reshard topo sh": "reshard topo show ",
    "reshard plan --mesh 4 --mem": "reshard plan --mesh 4 --memory-limit ",
    "reshard plan --planner hy": "reshard plan --planner hybrid ",
    "reshard plan --topology dgx-h1": "reshard plan --topology dgx-h100 ",
    "reshard replay some-tr": "reshard replay some-trace.jsonl ",
}


class Terminal:
    def __init__(self, command, folder, environment):
        pid, self.fd = pty.fork()
        if pid == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, environment)

    def type(self, text):
        os.write(self.fd, text.encode())

    def read_until(self, text, limit_s=20):
        """What the terminal shows until `text` is there, or all that came in time."""
        shown, end = b"", time.monotonic() + limit_s
        while text.encode() not in shown and time.monotonic() < end:
            if select.select([self.fd], [], [], 0.1)[0]:
                shown += os.read(self.fd, 65536)
        return shown.decode(errors="replace")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reshard", default=built.RESHARD)
    reshard = os.path.abspath(parser.parse_args().reshard)
    zsh = shutil.which("zsh")
    if zsh is None:
        print("zsh_completion: skipped, no zsh (apt-get install zsh)")
        return built.SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        open(os.path.join(folder, "some-trace.jsonl"), "w").close()
        path = os.path.dirname(reshard) + ":" + os.environ["PATH"]
        terminal = Terminal([zsh, "-f", "-i"], folder,
                            dict(os.environ, PATH=path, HOME=folder, TERM="dumb", PS1="ready> "))
        terminal.read_until("ready>")
        # The quotes keep the echo of the line from looking like its output.
        terminal.type("source <(reshard completion zsh); echo loa''ded\n")
        terminal.read_until("loaded")
        wrong = 0
        for line, expected in LINES.items():
            terminal.type(line + "\t")
            shown = terminal.read_until(expected)
            if expected not in shown:
                print(f"zsh_completion: {line!r}: expected {expected!r}, found {shown!r}")
                wrong += 1
            terminal.type("\x15")  # the line is taken back
        print(f"zsh_completion: {len(LINES)} lines, {wrong} wrong")
        return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
