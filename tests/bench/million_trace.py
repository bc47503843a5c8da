#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A trace of a million operations, for timing `reshard replay`.

    tests/bench/million_trace.py [OPERATIONS] > million.jsonl
    time reshard replay million.jsonl

1,024 ranks on 128 nodes; each is in eight communicators (its node's, one across nodes, six with
neighbours 1, 2, 4 ... 32 nodes away) and has four streams: compute, the node's all-reduces, those
across nodes, and batches of a send and a recv.
"""

import argparse

RANKS, PER_NODE, NEIGHBOURS = 1024, 8, 6


def collective(ranks, stream, comm):
    return (
        f'{{"op":"collective","kind":"all_reduce","ranks":"{ranks}","bytes":1048576,'
        f'"stream":{stream},"comm":"{comm}"}}'
    )


def end(op, rank, peer, k, step):
    return (
        f'{{"op":"{op}","rank":{rank},"peer":{peer % RANKS},"bytes":1048576,"stream":3,'
        f'"comm":"p{k}","batch":{step}}}'
    )


def step_lines(step):
    for node in range(RANKS // PER_NODE):
        ranks = f"{PER_NODE * node}-{PER_NODE * (node + 1) - 1}"
        yield f'{{"op":"compute","ranks":"{ranks}","duration_ps":{1000000 + node}}}'
        yield collective(ranks, 1, f"node{node}")
    if step % 4 == 0:
        for k in range(PER_NODE):
            yield collective(",".join(str(r) for r in range(k, RANKS, 64)), 2, f"across{k}")
    k = step % NEIGHBOURS
    for rank in range(RANKS):
        yield end("send", rank, rank + (PER_NODE << k), k, step)
        yield end("recv", rank, rank - (PER_NODE << k), k, step)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("operations", nargs="?", type=int, default=1_000_000)
    wanted = parser.parse_args().operations
    print('{"reshard_trace": 1, "topology": "dgx-h100:128"}')
    written = step = 0
    while written < wanted:
        lines = list(step_lines(step))
        print("\n".join(lines))
        written += len(lines)
        step += 1


if __name__ == "__main__":
    main()
