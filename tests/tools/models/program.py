# SPDX-License-Identifier: BSD-3-Clause
"""The program under test, and what its answers mean for buffers of element numbers."""

import itertools
import json
import subprocess

from models.numbers import flat

BYTES = {"bf16": 2, "f32": 4}


class Fault(Exception):
    """The program and the model's numbers disagree."""


def run(program, *words, codes=(0,)):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True)
    if done.returncode not in codes:
        raise Fault(f"{words}: exit {done.returncode}: {done.stderr.strip()[-400:]}")
    return done


def indices(lo, extents):
    return itertools.product(*(range(a, a + n) for a, n in zip(lo, extents)))


def element(of, index):
    at = 0
    for i, extent in zip(index, of["shape"]):
        at = at * extent + i
    return of["first"] + at


def places_of(lo, extents, offset, strides):
    """(index, place) of each element of a box, row-major."""
    for index in indices(lo, extents):
        yield index, offset + sum((i - a) * s for i, a, s in zip(index, lo, strides))


def check_layout(program, path, model, buffers):
    """`layout --json` has exactly the elements of both sides ({side: {(rank, name): numbers}})."""
    compare_parts(json.loads(run(program, "layout", path, "--json").stdout)["parts"], model,
                  buffers)


def compare_parts(parts, model, buffers):
    found = {"from": {}, "to": {}}
    for part in parts:
        of = model.tensors[part["tensor"]]
        own = found[part["side"]].setdefault((part["rank"], part["buffer"]), {})
        for index, place in places_of(part["lo"], part["extents"], part["offset"],
                                      part["strides"]):
            if place in own:
                raise Fault(f"layout: {part['buffer']} has two elements at {place}")
            own[place] = element(of, index)
    for side, want in buffers.items():
        want = {key: {i: e for i, e in enumerate(each) if e >= 0} for key, each in want.items()}
        want = {key: each for key, each in want.items() if each}
        for key in sorted(set(want) | set(found[side])):
            compare(model, side, key, want.get(key), found[side].get(key))


def compare(model, side, key, want, has):
    if want == has:
        return
    where = f"{side} rank {key[0]} {key[1]}"
    if want is None or has is None:
        raise Fault(f"{where}: {'not wanted' if want is None else 'missing'}")
    for place in sorted(set(want) | set(has)):
        if want.get(place) != has.get(place):
            say = lambda e: "padding" if e is None else model.name_of(e)
            raise Fault(f"{where}[{place}]: expected {say(want.get(place))}, found "
                        f"{say(has.get(place))}")


def end_of(model, end, buffers, held, dtypes):
    """(buffer key, place) of every element of a copy's end; tensors by where the rank has them."""
    if "tensor" in end:
        of = model.tensors[end["tensor"]]
        ranges = [[int(x) for x in each.split(":")] for each in end.get("box", "").split(",")
                  if end.get("box")]
        lo = [a for a, _ in ranges] or [0] * len(of["shape"])
        extents = [b - a for a, b in ranges] or of["shape"]
        return [held[end["rank"], element(of, index)] for index in indices(lo, extents)]
    key = (end["rank"], end["buffer"])
    if "byte" in end:
        size = BYTES[dtypes[key]]
        if end["byte"] % size or end["bytes"] % size:
            raise Fault(f"bytes within an element: {end}")
        first = end["byte"] // size
        return [(key, first + i) for i in range(end["bytes"] // size)]
    extents = end["extents"]
    lo = [0] * len(extents)
    return [(key, place) for _, place in places_of(lo, extents, end["offset"], end["strides"])]


def check_copies(model, copies, source, target, dtypes):
    """Copies applied to the numbers of the source give the target."""
    held = {}
    for key, numbers in source.items():
        for place, e in enumerate(numbers):
            held.setdefault((key[0], e), (key, place))
    got = {key: {} for key in target}
    for copy in copies:
        ends = [dict(copy[name]) for name in ("from", "to")]
        for end in ends:
            if "byte" in end:
                end["bytes"] = copy.get("bytes")
        reads = end_of(model, ends[0], source, held, dtypes["from"])
        writes = end_of(model, ends[1], target, held, dtypes["to"])
        if len(reads) != len(writes):
            raise Fault(f"{len(reads)} elements to {len(writes)}: {copy}")
        for (key, place), (to, at) in zip(reads, writes):
            if at in got[to]:
                raise Fault(f"{to}[{at}] is written twice: {copy}")
            got[to][at] = source[key][place]
    for key, numbers in target.items():
        want = {place: e for place, e in enumerate(numbers) if e >= 0}
        compare(model, "to", key, want, got[key])


def check_where(program, path, model, buffers, rng):
    """`where` of one element of each of a few tensors has all its places."""
    for name in rng.sample(sorted(model.tensors), min(3, len(model.tensors))):
        of = model.tensors[name]
        index = [rng.randrange(extent) for extent in of["shape"]]
        e, found = element(of, index), set()
        words = [f"{name}[{','.join(map(str, index))}]", path, "--json"]
        for part in json.loads(run(program, "where", *words).stdout)["parts"]:
            found.add((part["side"], part["rank"], part["buffer"], part["offset"]))
        want = {(side, *key, at) for side, each in buffers.items() for key, numbers in each.items()
                for at, number in enumerate(numbers) if number == e}
        if found != want:
            raise Fault(f"where {words[0]}: expected {sorted(want)}, found {sorted(found)}")


def check_sizes(program, path, text, sizes, rng):
    """The last element of a buffer is in it, and the one behind it is not; sizes are
    {side: {(rank, name): elements}}."""
    whole = {side: rng.choice(sorted(key for key, n in each.items() if n))
             for side, each in sizes.items()}
    lines, beyond = [], set()
    first = text.count("\n") + 1
    for side, each in sizes.items():
        keys = sorted(key for key, n in each.items() if n)
        for key in rng.sample(keys, min(20, len(keys))):
            for at in (each[key] - 1, each[key]):
                ends = {other: {"rank": whole[other][0], "buffer": whole[other][1], "offset": 0}
                        for other in sizes}
                ends[side] = {"rank": key[0], "buffer": key[1], "offset": at}
                if at == each[key]:
                    beyond.add(first + len(lines))
                lines.append(json.dumps({**ends, "count": 1}) + "\n")
    path.write_text(text + "".join(lines))
    said = json.loads(run(program, "check", path, "--json", codes=(1,)).stdout)["findings"]
    found = {line for each in said if each["kind"] == "out of buffer" for line in each["lines"]}
    for line in sorted(found ^ beyond):
        raise Fault(f"size: {'beyond' if line in beyond else 'within'} the buffer: "
                    f"{lines[line - first]}")


def sizes_of(buffers, alike):
    """Those whose names are `alike` have the size of the largest of that name."""
    out = {key: len(numbers) for key, numbers in buffers.items()}
    for name in alike:
        keys = [key for key in out if key[1] == name]
        out |= {key: max(out[each] for each in keys) for key in keys}
    return out


def check_job(program, job, lines, path, emit="copies"):
    """All of it for one job; its file is at `path`. Returns how many copies the plan has."""
    text = lines.text()
    path.write_text(text)
    model = job.model
    sides = dict(zip(("from", "to"), job.sides()))
    nested = {side: job.buffers(which) for side, which in sides.items()}
    buffers = {side: {key: flat(x) for key, x in each.items()} for side, each in nested.items()}
    check_layout(program, path, model, buffers)
    check_where(program, path, model, buffers, job.rng)
    sizes = {side: sizes_of(each, lines.padded[side]) for side, each in buffers.items()}
    check_sizes(program, path.with_suffix(".sizes"), text, sizes, job.rng)
    planned = run(program, "plan", "--requests", path, "--planner", "p2p", "--emit", emit).stdout
    judged = path.with_suffix(".judged")
    judged.write_text(text + planned)
    run(program, "check", judged)
    copies = [json.loads(line) for line in planned.splitlines()]
    dtypes = {side: dtypes_of(job, which, buffers[side]) for side, which in sides.items()}
    check_copies(model, copies, buffers["from"], buffers["to"], dtypes)
    return len(copies)


def dtypes_of(job, which, buffers):
    out = {}
    for key, numbers in buffers.items():
        dtype = job.model.dtype_of(max([0, *numbers]))
        out[key] = "f32" if job.converted == which else dtype
    return out
