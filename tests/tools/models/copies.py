# SPDX-License-Identifier: BSD-3-Clause
"""Copies between buffers of element numbers, planned here; and what the program says of them,
against what they do."""

import itertools
import json
import math

from models.program import element, indices, places_of, run


def copies_of(source, target, turn=0):
    """Strided boxes that fill the target, {(rank, name): numbers}. Of several holders of an
    element, `turn` chooses."""
    holders = {}
    for key, numbers in source.items():
        for place, e in enumerate(numbers):
            if e >= 0:
                holders.setdefault(e, {}).setdefault(key, place)
    out = []
    for key, numbers in target.items():
        runs = []
        for at, e in enumerate(numbers):
            if e >= 0 and not (runs and extends(runs[-1], at, holders[e])):
                choices = list(holders[e].items())
                choice = choices[(key[0] + turn) % len(choices)]
                runs.append({"key": choice[0], "from": choice[1], "step": None, "to": at, "n": 1})
        out += boxes(key, runs)
    return out


def extends(last, at, holders):
    """Adds the place to a run of constant step, if it goes on there."""
    place = holders.get(last["key"])
    if place is None or at != last["to"] + last["n"]:
        return False
    step = last["step"] if last["n"] > 1 else place - last["from"]
    if step <= 0 or place != last["from"] + step * last["n"]:
        return False
    last["step"], last["n"] = step, last["n"] + 1
    return True


def boxes(key, runs):
    """Equal runs at equal distances are one copy."""
    out, own = [], []
    like = lambda a: (a["key"], a["step"], a["n"])
    gap = lambda a, b: (b["from"] - a["from"], b["to"] - a["to"])
    for each in [*runs, None]:
        fits = own and each and like(own[-1]) == like(each) and each["from"] > own[-1]["from"]
        if fits and (len(own) == 1 or gap(own[-2], own[-1]) == gap(own[-1], each)):
            own.append(each)
            continue
        if own:
            first, m, n = own[0], len(own), own[0]["n"]
            across = gap(own[0], own[1]) if m > 1 else (n * (first["step"] or 1), n)
            end = lambda rank, name, offset, strides: {
                "rank": rank, "buffer": name, "offset": offset, "extents": [m, n],
                "strides": strides}  # fmt: skip
            out.append({"from": end(*first["key"], first["from"], [across[0], first["step"] or 1]),
                        "to": end(*key, first["to"], [across[1], 1])})
        own = [each]
    return out


def places(end):
    zero = [0] * len(end["extents"])
    return [at for _, at in places_of(zero, end["extents"], end["offset"], end["strides"])]


def wrongs(copies, source, target):
    """{(rank, buffer, place): (wanted, what arrives, rank it is from)}: nothing is None, written
    twice "twice". A copy beyond the end of a buffer is not made."""
    got = {}
    for copy in copies:
        if "writes" in copy:  # what arrives is no element of the buffer
            kind = "bytes" if "bytes" in copy else "not held"
            for at in copy["writes"]:
                got[copy["to"]["rank"], copy["to"]["buffer"], at] = (kind, copy["from"]["rank"])
            continue
        keys = [(copy[end]["rank"], copy[end]["buffer"]) for end in ("from", "to")]
        numbers = source.get(keys[0], [])
        reads = places(copy["from"])
        if max(reads) >= len(numbers):
            continue
        for place, at in zip(reads, places(copy["to"])):
            key = (*keys[1], at)
            got[key] = ("twice" if key in got else numbers[place], keys[0][0])
    out = {}
    for key, numbers in target.items():
        for at, e in enumerate(numbers):
            arrives = got.get((*key, at), (None, None))
            if e >= 0 and arrives[0] != e:
                out[(*key, at)] = (e, *arrives)
    return out


KINDS = {None: "missing", -1: "padding read", "twice": "written twice", "not held": "not held",
         "bytes": "wrong dtype"}


class Verdict:
    """What `check --json` says."""

    def __init__(self, program, path, text, copies):
        plain = [{key: x for key, x in copy.items() if key != "writes"} for copy in copies]
        path.write_text(text + "".join(json.dumps(copy) + "\n" for copy in plain))
        done = run(program, "check", path, "--json", codes=(0, 1, 2))
        self.code, self.said = done.returncode, done.stderr.strip()
        self.findings = json.loads(done.stdout)["findings"] if done.stdout else []

    def mistakes(self):
        return sorted({each["mistake"] for each in self.findings if each["mistake"]})

    def boxes(self, model):
        """(finding, box, its elements); none of what is out of a buffer, which names no tensor."""
        for finding in self.findings:
            for box in finding["boxes"] if finding["tensor"] else []:
                of = model.tensors[finding["tensor"]]
                yield finding, box, [element(of, index)
                                     for index in indices(box["lo"], box["extents"])]

    def exact(self, wrong):
        """Whether no element is called wrong that is right."""
        return len(wrong) == sum(finding["elements"] for finding in self.findings
                                 if finding["tensor"])

    def problem(self, model, wrong):
        """Where the findings do not name all that is wrong, or name what is right; or a wrong rank
        or index that arrives. Of elements in another order some of a box can be right."""
        if self.code != 1:
            return f"exit {self.code}: {self.said[-300:]}"
        want = {(rank, buffer, e) for (rank, buffer, _), (e, _, _) in wrong.items()}
        named = set()
        for finding, box, elements in self.boxes(model):
            own = {(box["rank"], box["buffer"], e) for e in elements}
            if not own & want:
                return f"named though right: {self.text(model, own)}"
            named |= own
            problem = self.wrong_arrival(model, wrong, finding, box)
            if problem:
                return problem
        # A copy that ends beyond a buffer is not made at all.
        whole = all(finding["places"] <= len(finding["boxes"]) for finding in self.findings)
        return f"not named: {self.text(model, want - named)}" if whole and want - named else ""

    @staticmethod
    def wrong_arrival(model, wrong, finding, box):
        """The first element of a box: what arrives there, and from where."""
        at = (box["rank"], box["buffer"], box["offset"])
        e, got, rank = wrong.get(at, (None, None, None))
        if e is None:
            return ""
        if e != element(model.tensors[finding["tensor"]], box["lo"]):
            return f"another place: {box}"
        if got is None and finding["kind"] == "not held":
            same = finding["got"] is None  # from a rank without the buffer, nothing arrives
        elif got in KINDS:
            same = finding["kind"] in (KINDS[got], "missing" if got == "bytes" else "")
        else:
            arrives = finding["got"] and element(model.tensors[finding["got"]], box["got_lo"])
            same = (arrives, box["from_rank"]) == (got, rank)
        return "" if same else f"{finding['kind']}: {box}: expected {got} of rank {rank}"

    @staticmethod
    def text(model, some):
        shown = [f"rank {r} {b} {model.name_of(e)}" for r, b, e in itertools.islice(
            sorted(some), 3)]
        return f"{len(some)}: " + ", ".join(shown)


def same_sizes(a, b):
    return a.keys() == b.keys() and all(len(a[key]) == len(b[key]) for key in a)


def total(copy):
    return math.prod(copy["from"]["extents"])
