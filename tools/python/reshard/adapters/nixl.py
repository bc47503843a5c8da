# SPDX-License-Identifier: BSD-3-Clause
"""Descriptor lists of NIXL (nixl_agent.initialize_xfer) as lines of copies of ranges of bytes.
The record has `agents` by name, each with its `rank` and its registered `regions`, (address,
length, device, name of the buffer as the meta info), and `transfers`, each with the arguments of
initialize_xfer and the `agent` that calls it."""

import bisect
import sys

from ._records import (InputError, Record, dict_of, entry_of, list_of, main, positive, refuse,
                       tuple_of, whole, words)  # fmt: skip

_DESCRIPTORS = list_of(tuple_of(whole, positive, whole))
_AGENT = Record("rank:whole", regions=list_of(tuple_of(whole, positive, whole, words)))
_TRANSFER = Record("operation:text agent:text remote_agent:text notif_msg? backends?",
                   local_descs=_DESCRIPTORS, remote_descs=_DESCRIPTORS)  # fmt: skip
_SIDES = {"WRITE": ("from", "to"), "READ": ("to", "from")}
_RECORD = Record(agents=dict_of(_AGENT), transfers=list_of(_TRANSFER))


def _regions(agent, where):
    """Sorted, by device and address."""
    regions = sorted([device, address, size, name] for address, size, device, name in agent)
    for one, other in zip(regions, regions[1:]):
        if one[0] == other[0] and one[1] + one[2] > other[1]:
            raise InputError(f"{where}.regions: {one[3]} and {other[3]} overlap")
    return regions


def _end(descriptor, rank, regions, where):
    """An end of a copy, which may reach beyond its region."""
    address, _, device = descriptor
    at = bisect.bisect(regions, [device, address, float("inf")]) - 1
    if at < 0 or regions[at][0] != device or address >= regions[at][1] + regions[at][2]:
        refuse(where, f"an address in a region of device {device} of its agent", address)
    return {"rank": rank, "buffer": regions[at][3], "byte": address - regions[at][1]}


def copies(record):
    """The lines of copies."""
    record, agents = _RECORD(record, "record"), {}
    for name, each in record["agents"].items():
        agents[name] = each["rank"], _regions(each["regions"], f"record.agents.{name}")
    for i, each in enumerate(record["transfers"]):
        where, lists = f"record.transfers[{i}]", (each["local_descs"], each["remote_descs"])
        local, remote = entry_of(_SIDES, each["operation"], f"{where}.operation", "WRITE or READ")
        mine = entry_of(agents, each["agent"], f"{where}.agent", "one of the agents")
        other = entry_of(agents, each["remote_agent"], f"{where}.remote_agent", "one of the agents")
        if len(lists[0]) != len(lists[1]):
            refuse(f"{where}.remote_descs", f"{len(lists[0])}, as in local_descs", len(lists[1]))
        for j, (ours, theirs) in enumerate(zip(*lists)):
            if ours[1] != theirs[1]:
                refuse(f"{where}.remote_descs[{j}]", f"{ours[1]} bytes, as locally", theirs[1])
            yield {local: _end(ours, *mine, f"{where}.local_descs[{j}]"),
                   remote: _end(theirs, *other, f"{where}.remote_descs[{j}]"),
                   "bytes": ours[1]}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main("nixl", copies))
