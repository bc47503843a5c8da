# SPDX-License-Identifier: BSD-3-Clause
"""Inputs with one thing wrong, drawn from those that are right: what is refused, with which words,
and what passes."""

import random
import re

import commands

DRAWS = 24
SLOW = ("traces/dtensor-p2p-sweep.jsonl", "traces/llama3-70b-fsdp-to-tp.jsonl")  # seconds each
NUMBERS = ["0", "-1", "1", "2", "3", "7", "0.5", "1e3", "2147483648", "9223372036854775807",
           "18446744073709551616", "1e400", "nan", ""]  # fmt: skip
MOST_BYTES = 40000  # of longer files the beginning is spoilt


def spoil(text, rng):
    lines = text.splitlines(keepends=True)
    tokens = list(re.finditer(r"-?\d+(?:\.\d+)?|\w+|[^\w\s]", text[:MOST_BYTES]))
    if not tokens:
        return text
    token = rng.choice(tokens)
    number = [t for t in tokens if t[0].lstrip("-")[:1].isdigit()]
    line = rng.randrange(len(lines))
    kind = rng.randrange(8)
    if kind <= 1 and number:
        token = rng.choice(number)
        return text[: token.start()] + rng.choice(NUMBERS) + text[token.end() :]
    if kind == 2:
        return text[: token.start()] + text[token.end() :]
    if kind == 3:
        return text[: token.start()] + rng.choice(tokens)[0] + text[token.end() :]
    if kind == 4:
        return "".join(lines[:line] + lines[line + 1 :])
    if kind == 5:
        return "".join(lines[: line + 1] + lines[line:])
    if kind == 6:
        other = rng.randrange(len(lines))
        lines[line], lines[other] = lines[other], lines[line]
        return "".join(lines)
    return text[: token.start()] + token[0] + token[0] + text[token.end() :]


def items(folder, inputs):
    """A pinned line per file, over all its draws. They are read from files of the same name, so
    that messages name it."""
    for name in (name for name in inputs if name not in SLOW and not commands.is_large(name)):
        text = (folder / name).read_text(errors="replace")
        rng = random.Random(name)
        wrong = []
        for draw in range(DRAWS):
            path = folder / "spoilt" / str(draw) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(spoil(text, rng))
            for command in commands.readers(name):
                place = f"spoilt/{draw}/{name}"
                wrong.append([place if word == name else word for word in command])
        yield f"spoilt {name}", wrong
