#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A training step of a pipeline: forward and backward passes of micro-batches over stages, with the
sends of activations and gradients between them.

Usage: python3 tools/traces/pipeline.py [--schedule gpipe|1f1b|interleaved] [--stages 4]
           [--micro-batches 4] [--chunks 2] [--forward-us 39680] [--backward-us 79360]
           [--bytes 67108864] [--order upstream|downstream] [--transport nccl|copy-engine]
           [--topology pcie-8x3090] [--first-rank 0] > pipeline.jsonl

Stage s runs on rank first-rank + s. `gpipe` does all forward passes, then all backward passes;
`1f1b` (PipeDream-Flush, as in Megatron-LM) starts with one forward pass per stage that follows,
then alternates forward and backward; `interleaved` gives every stage --chunks parts of the model,
so a micro-batch passes through all stages that many times.

Each pass is a compute of its rank; each tensor that leaves a rank is an isend and an irecv of the
communicator `pp`, which runs them one after another on every rank, in the order of their lines: the
order in which the passes that make them would end if messages took no time. Among passes that end
at the same time, --order decides: `upstream` puts those of earlier stages first, like a program
that loops over the stages ("send 1 -> 2" before "send 2 -> 3"); `downstream` those of later stages.
The forum post that pipeline-8x3090 is taken from asks which is right; its forward pass of 39.68 ms
is the default here, with a backward pass of twice that. A pass names what it needs in `after`.
"""

import argparse

from trace_lines import write


def options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schedule", choices=["gpipe", "1f1b", "interleaved"], default="1f1b")
    parser.add_argument("--stages", type=int, default=4)
    parser.add_argument("--micro-batches", type=int, default=4)
    parser.add_argument("--chunks", type=int, default=2)
    parser.add_argument("--forward-us", type=int, default=39_680)
    parser.add_argument("--backward-us", type=int, default=79_360)
    parser.add_argument("--bytes", type=int, default=67_108_864)
    parser.add_argument("--order", choices=["upstream", "downstream"], default="upstream")
    parser.add_argument("--transport", choices=["ideal", "nccl", "copy-engine"], default="nccl")
    parser.add_argument("--topology", default="pcie-8x3090")
    parser.add_argument("--first-rank", type=int, default=0)
    given = parser.parse_args()
    if min(given.stages, given.micro_batches, given.chunks) < 1:
        parser.error("expected stages, micro-batches and chunks of at least 1")
    if given.schedule == "interleaved" and given.micro_batches % given.stages:
        parser.error("interleaved: expected micro-batches in multiples of the stages")
    return given


def passes(given):
    """For each stage its passes in order: (kind, micro-batch, chunk)."""
    stages, count = given.stages, given.micro_batches
    chunks = given.chunks if given.schedule == "interleaved" else 1
    out = []
    for stage in range(stages):
        forward = [("forward", m, 0) for m in range(count)]
        backward = [("backward", m, 0) for m in range(count)]
        warm_up = count if given.schedule == "gpipe" else min(count, stages - 1 - stage)
        if given.schedule == "interleaved":
            groups = range(0, count, stages)
            forward = [
                ("forward", first + i, c)
                for first in groups
                for c in range(chunks)
                for i in range(stages)
            ]
            backward = [
                ("backward", first + i, c)
                for first in groups
                for c in reversed(range(chunks))
                for i in range(stages)
            ]
            warm_up = min(len(forward), 2 * (stages - 1 - stage) + (chunks - 1) * stages)
        own = forward[:warm_up]
        for i, next_backward in enumerate(backward):
            own += forward[warm_up + i : warm_up + i + 1] + [next_backward]
        out.append(own)
    return out, chunks


def needs(stage, one, stages, chunks):
    """The pass that makes this one's input, as (stage, pass); None for the first pass."""
    kind, m, chunk = one
    if kind == "forward":
        if stage > 0:
            return stage - 1, ("forward", m, chunk)
        return (stages - 1, ("forward", m, chunk - 1)) if chunk > 0 else None
    if stage < stages - 1:
        return stage + 1, ("backward", m, chunk)
    if chunk < chunks - 1:
        return 0, ("backward", m, chunk + 1)
    return stage, ("forward", m, chunk)


def ends(given, order, chunks):
    """When each pass would end if messages took no time."""
    done, at, clock = {}, [0] * given.stages, [0] * given.stages
    while any(at[s] < len(order[s]) for s in range(given.stages)):
        progress = False
        for s in range(given.stages):
            while at[s] < len(order[s]):
                one = order[s][at[s]]
                before = needs(s, one, given.stages, chunks)
                if before is not None and before not in done:
                    break
                start = max(clock[s], 0 if before is None else done[before])
                taken = given.forward_us if one[0] == "forward" else given.backward_us
                clock[s] = done[(s, one)] = start + taken
                at[s] += 1
                progress = True
        if not progress:
            raise SystemExit("pipeline.py: these passes wait for each other")
    return done


def name_of(stage, one, chunks):
    kind, m, chunk = one
    return f"{kind} {m}{f'.{chunk}' if chunks > 1 else ''} on {stage}"


def main():
    given = options()
    order, chunks = passes(given)
    done = ends(given, order, chunks)
    operations, messages = [], []
    for s, own in enumerate(order):
        for one in own:
            name = name_of(s, one, chunks)
            line = {"op": "compute", "id": name, "name": name, "ranks": str(given.first_rank + s)}
            us = given.forward_us if one[0] == "forward" else given.backward_us
            line["duration_ps"] = us * 1_000_000
            before = needs(s, one, given.stages, chunks)
            if before is not None and before[0] != s:
                line["after"] = f"to {name}"
                messages.append((before, (s, one)))
            operations.append(line)
    sign = 1 if given.order == "upstream" else -1
    messages.sort(key=lambda m: (done[m[0]], sign * m[0][0]))
    tags = {}
    for (source, made), (destination, needed) in messages:
        tag = tags.setdefault((source, destination), len(tags))
        made, needed = name_of(source, made, chunks), name_of(destination, needed, chunks)
        common = {"bytes": given.bytes, "tag": tag, "comm": "pp", "stream": 1}
        ranks = given.first_rank + source, given.first_rank + destination
        what = {"name": f"send {source} -> {destination}", "id": f"to {needed}", "after": made}
        operations.append({"op": "isend", **what, "rank": ranks[0], "peer": ranks[1], **common})
        operations.append({"op": "irecv", "rank": ranks[1], "peer": ranks[0], **common})
    write({"topology": given.topology, "transport": given.transport}, operations)


if __name__ == "__main__":
    main()
