# SPDX-License-Identifier: BSD-3-Clause
"""Processes for the tests of reshard.torch."""

import os
import socket
import subprocess
import sys

RANKS = 4


def _free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return str(listening.getsockname()[1])


def run_ranks(start, name, count=RANKS, **environment):
    """Each of `count` runs the text `start` with a case's name, its rank and a port. What they
    ended with, and what they said."""
    port = _free_port()
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", start, name, rank, port],
            cwd=os.path.dirname(os.path.abspath(__file__)),
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in map(str, range(count))
    ]
    said = [rank.communicate(timeout=900)[0] for rank in ranks]
    return [rank.returncode for rank in ranks], said
