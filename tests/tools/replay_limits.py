#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every limit that traces/README.md names is handled in seconds, with a report or with one
sentence: ranks, operations, bytes, times, tags, ids, streams, communicators, faults, edges of
`after`.

    replay_limits.py --reshard PROGRAM [NAME...]
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import built  # noqa: E402

LIMIT_S = 120  # of each case, on a machine that does much else
RANKS, BYTES, TIME_PS = 1 << 20, 1 << 62, 10**18
ALL = f"0-{RANKS - 1}"
HUGE = "dgx-h100:131072"
SPLIT = ["--communicators", "split"]


def trace(*lines, topology="dgx-h100", **header):
    return [{"reshard_trace": 1, "topology": topology, **header}, *lines]


def compute(ranks, duration=1000, **more):
    return {"op": "compute", "ranks": ranks, "duration_ps": duration, **more}


def collective(kind, ranks, size=8, **more):
    return {"op": "collective", "kind": kind, "ranks": ranks, "bytes": size, **more}


def call(rank, kind="all_reduce", size=1 << 20, comm="c", **more):
    return {"op": "collective", "kind": kind, "rank": rank, "comm": comm, "bytes": size, **more}


def message(source, target, size=8, **more):
    ends = {"bytes": size, **more}
    return [
        {"op": "send", "rank": source, "peer": target, **ends},
        {"op": "recv", "rank": target, "peer": source, **ends},
    ]


def move(mesh, **more):
    fields = {"shape": [4096, 4096], "dtype": "bf16", "from": "S(0)", "to": "S(1)", "mesh": mesh}
    return {"op": "redistribute", **fields, **more}


def rooted(kind, ranks, size=8, root=0):
    return {"op": "collective", "kind": kind, "ranks": ranks, "bytes": size, "root": root}


# By name: what is run, the exit codes that are right, and options where there are some.
def cases():
    yield "compute on all ranks", trace(compute(ALL), topology=HUGE), {0}
    yield "many computes on all ranks", trace(*[compute(ALL)] * 8, topology=HUGE), {0}
    for kind in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all"):
        # Where all parts are alike, so are the rounds; else 2^15 ranks have 2^31 transfers.
        yield f"{kind} of all ranks", trace(collective(kind, ALL, RANKS), topology=HUGE), {0, 2}
    # Bytes that ranks do not divide: over links alone 2^32 transfers, which no timeline holds.
    uneven = collective("all_reduce", "0-32767", 1_000_001)
    yield "uneven all_reduce of 2^15 ranks", trace(uneven, topology="dgx-h100:4096"), {0}
    alone = trace(uneven, topology="dgx-h100:4096", transport="ideal")
    yield "uneven all_reduce of 2^15 ranks over links", alone, {2}
    spread = trace(rooted("broadcast", ALL), topology=HUGE)
    yield "broadcast of all ranks", spread, {0}
    many, large = "0-65535", "dgx-h100:8192"
    for kind in ("broadcast", "reduce", "gather", "scatter"):
        yield f"{kind} of 2^16 ranks", trace(rooted(kind, many), topology=large), {0}
    barrier = {"op": "collective", "kind": "barrier", "ranks": many}
    yield "barrier of 2^16 ranks", trace(barrier, topology=large), {0}
    named = {"c": "0-32767"}
    yield (
        "calls of 2^15 ranks",
        trace(*[call(rank) for rank in range(1 << 15)], topology="dgx-h100:4096", comms=named),
        {0},
    )
    yield (
        "calls of 2^15 ranks that differ",
        trace(
            *[call(rank, size=8 + rank % 2) for rank in range(1 << 15)],
            topology="dgx-h100:4096",
            comms=named,
        ),
        {1},
    )
    ends = [each for i in range(1 << 15) for each in message(i % 8, (i + 1) % 8)]
    yield "65,536 ends of messages", trace(*ends), {0}
    alone = [each for each in ends if each["op"] == "send"]
    yield "as many without the other end", trace(*alone), {1}
    asynchronous = [{**each, "op": "i" + each["op"]} for each in ends]
    yield "as many that nobody waits for", trace(*asynchronous), {0}
    tags = [each for i in range(1 << 14) for each in message(0, 1, tag=BYTES - i)]
    yield "tags up to 2^62", trace(*tags), {0}
    streams = [compute("0", stream=2**31 - 1 - i) for i in range(1 << 16)]
    yield "65,536 streams of a rank", trace(*streams), {0}
    ids = [compute("0", id=f"{i}", after=[f"{i - 1}"] if i else []) for i in range(1 << 16)]
    yield "a chain of 65,536 ids", trace(*ids), {0}
    first = [compute("0-7", id=i, stream=i) for i in range(1000)]
    later = [compute("0-7", after=list(range(1000)), stream=i) for i in range(1000)]
    yield "a million edges of after", trace(*first, *later), {0}
    wide = [compute("0-8191", id=i, stream=i) for i in range(200)]
    behind = [compute("0-8191", after=list(range(200)), stream=i) for i in range(200)]
    crossed = trace(*wide, *behind, topology="dgx-h100:1024")
    yield "edges between operations of 8,192 ranks", crossed, {0}
    comms = {f"c{i}": [i % 8, (i + 1) % 8] for i in range(1 << 14)}
    ours = [collective("all_reduce", ranks, comm=name) for name, ranks in comms.items()]
    yield "16,384 communicators", trace(*ours, comms=comms, launch_order_implicit=True), {0}
    faults = [
        {"op": "fault", "rank": i % 8, "share": 0.5 + i / (1 << 16), "from_ps": 1000 * i}
        for i in range(1 << 14)
    ]
    yield "16,384 faults", trace(*faults, compute("0-7", 10**8), *message(0, 1, 10**7)), {0}
    late = [{"op": "fault", "rank": i % 8, "late_ps": 10} for i in range(1 << 14)]
    yield "late ranks", trace(*late), {0}
    yield "2^62 bytes", trace(*message(0, 1, BYTES)), {0, 2}
    for kind in ("broadcast", "gather", "scatter", "reduce"):
        yield f"2^62 bytes by {kind}", trace(rooted(kind, "0-7", BYTES)), {0, 2}
    yield "2^62 bytes by all_reduce", trace(collective("all_reduce", "0-7", BYTES)), {0, 2}
    yield "times up to 10^18 ps", trace(*[compute("0", TIME_PS)] * 4), {0}
    yield "times that are too much together", trace(*[compute("0", TIME_PS)] * 8), {2}
    batch = [each for i in range(1 << 13) for each in message(0, 1, batch="b", tag=i)]
    sends = [each for each in batch if each["op"] == "send"]
    receives = [each for each in batch if each["op"] == "recv"]
    pairs = [each for i in range(1 << 13) for each in message(0, 1, tag=BYTES - i)]
    behind = [{**each, "op": "i" + each["op"]} for each in pairs]
    yield "many behind a batch of 8,192", trace(*sends, *receives, *behind), {0}
    moves = [move("m", **{"async": True}) for _ in range(600)]
    yield "600 redistributions that nobody waits for", trace(*moves, meshes={"m": "8"}), {0}
    several = [
        move("m", shape=[4096, 64 * (i + 1)], stream=i, **{"async": True}) for i in range(300)
    ]
    at_once = trace(*several, meshes={"m": "16"}, topology="dgx-h100:2")
    yield "300 different ones at once", at_once, {0}
    ring = [(i, (i + k) % 8192) for i in range(8192) for k in range(1, 5)]
    pairs = [{**each, "op": "i" + each["op"]} for a, b in ring for each in message(a, b)]
    yield "32,768 pairs that are split off", trace(*pairs, topology="dgx-h100:1024"), {0}, SPLIT
    circle = [
        {"op": op, "rank": rank, "peer": (rank + by) % 4096, "bytes": 8}
        for rank in range(4096)
        for op, by in (("recv", 4095), ("send", 1))
    ]
    yield "a circle of 4,096 waits", trace(*circle, topology="dgx-h100:512"), {1}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reshard", default=built.RESHARD)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "limit.jsonl"
        for name, lines, codes, *options in cases():
            if given.names and not any(each in name for each in given.names):
                continue
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
            started = time.monotonic()
            try:
                done = subprocess.run(
                    [given.reshard, "replay", str(path), "--data", "proof", "--json"]
                    + sum(options, []),
                    capture_output=True,
                    text=True,
                    timeout=LIMIT_S,
                )
                code, said = done.returncode, done.stderr
            except subprocess.TimeoutExpired:
                code, said = None, f"does not end in {LIMIT_S} s"
            print(f"{name}: exit {code} after {time.monotonic() - started:.1f} s", flush=True)
            if code not in codes or len(said) > 200_000:
                failed += 1
                print(f"FAILED: expected {sorted(codes)}, found {code}: {said[:1000]}")
    print(f"replay_limits: {failed} failed" if failed else "replay_limits: everything as expected")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
