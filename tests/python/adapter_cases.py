# SPDX-License-Identifier: BSD-3-Clause
"""Drawn models, and right plans for them in the form of each framework. Where an element comes from
is found by looking at all boxes for it, one element after another. Each function returns a record,
the lines of layouts that it does not have itself, and moves: each changes one thing, so that what
is copied has the same size and lies elsewhere, and returns the tensor."""

import itertools
import math

SIZES = {"bf16": 2, "f32": 4, "u8": 1}


def box_text(start, extents):
    return ",".join(f"{lo}:{lo + n}" for lo, n in zip(start, extents))


def grid(chance, shape):
    """The tensor cut into (start, extents), in any order."""
    cuts = []
    for n in shape:
        inner = chance.sample(range(1, n), min(n - 1, chance.randrange(3)))
        ends = [0, *sorted(inner), n]
        cuts.append([(lo, hi - lo) for lo, hi in zip(ends, ends[1:])])
    boxes = [([lo for lo, _ in each], [n for _, n in each]) for each in itertools.product(*cuts)]
    chance.shuffle(boxes)
    return boxes


def elements_of(start, extents):
    return itertools.product(*(range(lo, lo + n) for lo, n in zip(start, extents)))


def holds(box, element):
    return all(lo <= x < lo + n for lo, n, x in zip(*box, element))


def local(box, element):
    """The place in a row-major buffer of the box."""
    place = 0
    for lo, n, x in zip(*box, element):
        place = place * n + x - lo
    return place


def overlaps(box, sources):
    """(which source, start, extents) of what of the box each source gives."""
    found = {}
    for element in elements_of(*box):
        (which,) = [i for i, source in enumerate(sources) if holds(source, element)]
        found.setdefault(which, []).append(element)
    for which, elements in found.items():
        start, last = list(map(min, zip(*elements))), list(map(max, zip(*elements)))
        extents = [hi - lo + 1 for lo, hi in zip(start, last)]
        assert math.prod(extents) == len(elements)
        yield which, start, extents


def tensors_of(chance):
    for i in range(chance.randrange(1, 4)):
        shape = [chance.randrange(1, 7) for _ in range(chance.randrange(1, 4))]
        yield f"layers.{i}.weight", shape, chance.choice(sorted(SIZES))


def shifts(table, key, index, limits, tensor):
    """Moves of table[key][index] by one, within its limits."""
    for by in (-1, 1):
        if limits[0] <= table[key][index] + by <= limits[1]:
            yield lambda by=by: table[key].__setitem__(index, table[key][index] + by) or tensor


def dcp(chance):
    ranks, state, stored, moves, given = range(chance.randrange(1, 5)), {}, [], [], []
    items = {rank: [] for rank in ranks}
    for name, shape, dtype in tensors_of(chance):
        chunks = grid(chance, shape)
        state[name] = {"properties": {"dtype": dtype}, "size": shape,
                       "chunks": [{"offsets": lo, "sizes": n} for lo, n in chunks]}  # fmt: skip
        for lo, _ in chunks:
            saver = chance.randrange(3)
            stored.append([{"fqn": name, "offset": lo}, {"relative_path": f"__{saver}_1.distcp"}])
        for rank, box in [(chance.choice(ranks), box) for box in grid(chance, shape)]:
            given.append({"side": "to", "buffer": f"{name} {box[0]}", "ranks": str(rank),
                          "shape": box[1], "dtype": dtype,
                          "parts": [{"tensor": name, "box": box_text(*box)}]})  # fmt: skip
            for which, start, extents in overlaps(box, chunks):
                origin, sizes = chunks[which]
                item = {
                    "type": "TENSOR",
                    "dest_index": {"fqn": name, "offset": box[0], "index": 0},
                    "dest_offsets": [x - lo for x, lo in zip(start, box[0])],
                    "storage_index": {"fqn": name, "offset": origin, "index": which},
                    "storage_offsets": [x - lo for x, lo in zip(start, origin)],
                    "lengths": extents,
                }
                items[rank].append(item)
                for dim, n in enumerate(extents):
                    last = sizes[dim] - n
                    moves += shifts(item, "storage_offsets", dim, (0, last), name)
    plans = [{"items": items[rank]} for rank in ranks]
    metadata = {"state_dict_metadata": {**state, "step": {}}, "storage_data": stored}
    return {"metadata": metadata, "plans": plans}, given, moves


def rows_on_ranks(chance, rows, ranks):
    """By rank, the global row of each local one; every rank has as many, in blocks."""
    unit = chance.choice([n for n in range(1, rows + 1) if rows % (n * ranks) == 0])
    blocks = [range(lo, lo + unit) for lo in range(0, rows, unit)]
    chance.shuffle(blocks)
    each = len(blocks) // ranks
    return [list(itertools.chain(*blocks[i * each : (i + 1) * each])) for i in range(ranks)]


def megatron(chance):
    tp = chance.choice([1, 2, 4]), chance.choice([1, 2, 3])
    plans = [{"send_ops": [], "recv_ops": []} for _ in range(sum(tp))]
    given, buffers, moves, tasks = [], [], [], itertools.count()
    for i in range(chance.randrange(1, 4)):
        name, dim = f"decoder.layers.{i + 4}.weight", chance.randrange(2)
        shape = [chance.randrange(1, 4)] * 2
        shape[dim] = 12 * chance.randrange(1, 3)
        given.append({"tensor": name, "shape": shape, "dtype": "bf16"})
        held = [rows_on_ranks(chance, shape[dim], n) for n in tp]
        for side, ranks, first in (("from", held[0], 0), ("to", held[1], tp[0])):
            for rank, rows in enumerate(ranks):
                parts = []
                for at, row in enumerate(rows):  # a part for each row
                    start, extents, place = [0, 0], list(shape), [0, 0]
                    start[dim], extents[dim], place[dim] = row, 1, at
                    parts.append({"tensor": name, "box": box_text(start, extents),
                                  "at": ",".join(map(str, place))})  # fmt: skip
                extents = list(shape)
                extents[dim] = len(rows)
                buffers.append({"side": side, "buffer": f"{side}.{i}.weight", "dtype": "bf16",
                                "ranks": str(first + rank), "shape": extents,
                                "parts": parts})  # fmt: skip
        for rank, rows in enumerate(held[1]):
            runs = []
            for at, row in enumerate(rows):
                ((source, there),) = [
                    (s, each.index(row)) for s, each in enumerate(held[0]) if row in each
                ]
                if runs and runs[-1][0] == source and sum(runs[-1][1:4:2]) == there:
                    runs[-1][3] += 1
                else:
                    runs.append([source, there, at, 1])
            for source, there, at, n in runs:
                ends = []
                for lo in (there, at):
                    ends.append([[None, None, None], [None, None, None]])
                    ends[-1][dim] = [lo, lo + n, None]
                task, to = next(tasks), tp[0] + rank
                send = {"param_name": f"from.{i}.weight", "peer_rank": to, "is_send": True,
                        "my_slice": ends[0], "peer_slice": ends[1], "task_id": task}  # fmt: skip
                receive = {"param_name": f"to.{i}.weight", "peer_rank": source, "is_send": False,
                           "my_slice": ends[1], "peer_slice": ends[0], "task_id": task}  # fmt: skip
                plans[source]["send_ops"].append(send)
                plans[to]["recv_ops"].append(receive)
                moves += moved_slices(send["my_slice"], dim, len(held[0][0]), name)
                moves += moved_slices(receive["my_slice"], dim, len(rows), name)
    return plans, given + buffers, moves


def moved_slices(slices, dim, rows, tensor):
    lo, hi, _ = slices[dim]
    for by in (-1, 1):
        if lo + by >= 0 and hi + by <= rows:
            yield lambda by=by: slices.__setitem__(dim, [lo + by, hi + by, None]) or tensor


def mooncake(chance):
    kinds, moves, operations = list(tensors_of(chance)), [], []
    descriptors = [
        {"tensor_id": name, "global_shape": shape, "dtype": dtype, "itemsize": SIZES[dtype],
         "shard_dims": [], "layout_fingerprint": "rows", "parallel_axes": [], "layer_id": None,
         "expert_id": None} for name, shape, dtype in kinds]  # fmt: skip
    placements = {}
    for side in ("source", "target"):
        people = [f"worker-{i}" for i in range(chance.randrange(1, 5))]
        parts = [{"participant_id": name, "rank": {}, "fragments": []} for name in people]
        for name, shape, dtype in kinds:
            for lo, n in grid(chance, shape):
                owners = parts if side == "target" and chance.random() < 0.2 else [parts[-1]]
                chance.shuffle(parts)
                for part in owners:
                    part["fragments"].append({
                        "placement_fragment_id": f"{part['participant_id']} {name} {lo}",
                        "tensor_id": name, "global_offset": lo, "local_shape": n, "rank": {},
                        "nbytes": math.prod(n) * SIZES[dtype], "aliases": []})  # fmt: skip
        topology = {"participants": [{"participant_id": name, "rank": {}} for name in people]}
        placements[side] = {"topology": topology, "tensors": descriptors, "parts": parts}
    fragments = {side: [each for part in placements[side]["parts"] for each in part["fragments"]]
                 for side in placements}  # fmt: skip
    for target in fragments["target"]:
        name = target["tensor_id"]
        size = next(each["itemsize"] for each in descriptors if each["tensor_id"] == name)
        sources = [each for each in fragments["source"] if each["tensor_id"] == name]
        boxes = [(each["global_offset"], each["local_shape"]) for each in sources]
        for which, start, extents in overlaps(
            (target["global_offset"], target["local_shape"]), boxes
        ):
            operation = {"tensor_id": name, "overlap_offset": start, "overlap_shape": extents,
                         "inner_bytes": extents[-1] * size, "outer_loop_counts": extents[:-1],
                         "source": sources[which], "target": target}  # fmt: skip
            for side in ("source", "target"):
                shape = operation[side]["local_shape"]
                at = [x - lo for x, lo in zip(start, operation[side]["global_offset"])]
                strides = [math.prod(shape[dim + 1 :]) * size for dim in range(len(shape))]
                first = sum(x * stride for x, stride in zip(at, strides))
                operation[f"{side}_base_offset"] = first
                operation[f"{side}_strides"] = strides[:-1]
                last = first + sum((n - 1) * s for n, s in zip(extents, strides)) + size
                for by in (-size, size):
                    if first + by >= 0 and last + by <= math.prod(shape) * size:
                        moves.append(lambda operation=operation, key=f"{side}_base_offset",
                                     by=by, name=name: operation.update(
                                         {key: operation[key] + by}) or name)  # fmt: skip
            operations.append(operation)
    placed = {f"{side}_placement": each for side, each in placements.items()}
    return {**placed, "operations": operations}, [], moves


def nixl(chance):
    agents, given, buffers, moves, transfers = {}, [], [], [], {}
    held = {"from": {}, "to": {}}
    people = {side: [f"{side}-{i}" for i in range(chance.randrange(1, 4))] for side in held}
    for rank, name in enumerate(itertools.chain(*people.values())):
        agents[name] = {"rank": rank, "regions": []}
    for tensor, shape, dtype in tensors_of(chance):
        given.append({"tensor": tensor, "shape": shape, "dtype": dtype})
        for side in held:
            for box in grid(chance, shape):
                agent = chance.choice(people[side])
                regions = agents[agent]["regions"]
                base = regions[-1][0] + regions[-1][1] if regions else 4096
                name, size = f"{tensor} {box[0]}", math.prod(box[1]) * SIZES[dtype]
                regions.append([base + chance.randrange(2) * 64, size, 0, name])
                held[side].setdefault(tensor, []).append((box, agent, regions[-1]))
                buffers.append({"side": side, "buffer": name, "ranks": str(agents[agent]["rank"]),
                                "shape": box[1], "dtype": dtype,
                                "parts": [{"tensor": tensor, "box": box_text(*box)}]})  # fmt: skip
        size = SIZES[dtype]
        for box, agent, region in held["to"][tensor]:
            runs = []
            for element in elements_of(*box):
                (source,) = [each for each in held["from"][tensor] if holds(each[0], element)]
                ends = [source[2][0] + local(source[0], element) * size,
                        region[0] + local(box, element) * size]  # fmt: skip
                last = runs[-1] if runs else None
                if last and last[0] is source and last[1] + last[3] == ends[0]:
                    last[3] += size
                else:
                    runs.append([source, *ends, size])
            for source, there, here, length in runs:
                verb = chance.choice(("READ", "WRITE"))
                key = source[1], agent, verb
                there, here = [there, length, 0], [here, length, 0]
                transfers.setdefault(key, []).append((there, here))
                for end, limits in ((there, source[2]), (here, region)):
                    for by in (-size, size):
                        if limits[0] <= end[0] + by <= limits[0] + limits[1] - length:
                            moves.append(lambda end=end, by=by, tensor=tensor: end.__setitem__(
                                0, end[0] + by) or tensor)  # fmt: skip
    listed = []
    for (source, target, verb), pairs in transfers.items():
        sides = [[each[0] for each in pairs], [each[1] for each in pairs]]
        people = [source, target]
        order = 1 if verb == "WRITE" else -1
        ours, theirs = people[::order]
        local_descs, remote_descs = sides[::order]
        listed.append({"operation": verb, "agent": ours, "remote_agent": theirs,
                       "local_descs": local_descs, "remote_descs": remote_descs})  # fmt: skip
    return {"agents": agents, "transfers": listed}, given + buffers, moves
