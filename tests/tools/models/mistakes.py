# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes in the copies of a job: what somebody believes of a layout and is not so, and single
copies that go wrong. Each has a name, whether a job can have it, and the wrong copies."""

import copy as copying

from models.copies import copies_of, places, same_sizes, total
from models.numbers import flat
from models.places import sglang_split, vllm_split


class Case:
    """A job from training to serving, its numbers and right copies."""

    def __init__(self, job, rng):
        self.job, self.rng, self.model = job, rng, job.model
        self.train, self.serve = job.training, job.serving
        self.turn = rng.randrange(4)

    def prepare(self):
        self.source, self.target = self.numbers("training"), self.numbers("serving")
        self.right = copies_of(self.source, self.target, self.turn)
        return self

    def numbers(self, which, place=None):
        return {key: flat(x) for key, x in self.job.buffers(which, place).items()}


def believing(which, **fields):
    """Copies by somebody who takes one field of a place for another."""

    def plant(case):
        place = getattr(case.job, which).but(**fields)
        try:
            believed = case.numbers(which, place)
        except AssertionError:  # it cannot be believed, so it is not
            return None
        sides = {"training": case.source, "serving": case.target}
        if not same_sizes(believed, sides[which]) and not fields.keys() & {"split", "kv_cut",
                                                                           "vocab_divisible"}:
            return None
        sides[which] = believed
        try:
            return copies_of(sides["training"], sides["serving"], case.turn)
        except KeyError:  # by this belief nobody has some of it
            return None

    return plant


def other_split(case):
    rule = sglang_split if case.serve.kind == "vllm" else vllm_split
    return believing("serving", split=rule(case.model.layers, case.serve.pp))(case)


def other_stages(case):
    """Of the source, whose layers are numbered within a stage."""
    even = sglang_split(case.model.layers, case.train.pp)
    split = even if even != case.train.split else even[::-1]
    return believing("training", split=split)(case)


def local_experts(case):
    """Every rank's experts are taken for number 0 and on."""
    ep = case.serve.expert(case.serve.first_rank)[1]
    each = case.model.experts // ep
    if case.model.experts % ep or ep == 1:
        return None
    return believing("serving", expert_rule="eplb", slots=list(range(each)) * ep)(case)


def older_map(case):
    """As the balancer left the slots some time ago."""
    slots = list(case.serve.slots)
    for _ in range(10):
        case.rng.shuffle(slots)
        if slots != case.serve.slots:
            return believing("serving", slots=slots)(case)
    return None


def spare_slots_forgotten(case):
    """Redundant slots are not written."""
    done, out = set(), []
    for each in case.right:
        end = each["to"]
        if "mlp.experts" not in end["buffer"]:
            out.append(each)
            continue
        numbers = case.target[end["rank"], end["buffer"]]
        first = numbers[end["offset"]]
        if (end["rank"], end["buffer"], first) not in done:
            out.append(each)
        done.add((end["rank"], end["buffer"], first))
    return out if len(out) < len(case.right) else None


def in_bytes(case):
    """One copy as a range of bytes, though a side converts."""
    own = 4 if case.job.converted == "training" else 2
    other = 2 if case.job.converted != "serving" else 4

    def choose(each):
        ends = each["from"], each["to"]
        m, n = ends[0]["extents"]
        number = case.target[ends[1]["rank"], ends[1]["buffer"]][ends[1]["offset"]]
        contiguous = all(end["strides"][1] == 1 and m == 1 for end in ends)
        if not contiguous or n % 2 or case.model.dtype_of(number) != "bf16":
            return None
        out = {"bytes": n * other}
        for key, size in (("from", own), ("to", other)):
            end = each[key]
            out[key] = {"rank": end["rank"], "buffer": end["buffer"],
                        "byte": end["offset"] * size}
        out["writes"] = [ends[1]["offset"] + i for i in range(n)]
        return [out]

    return changed(case, choose)


def tied_once(case):
    last = max(rank for rank, _ in case.target)
    ranks = {rank for rank, name in case.target
             if case.serve.stage(rank) == case.serve.pp - 1} | {last}
    return [each for each in case.right
            if each["to"]["buffer"] != "model.embed_tokens.weight"
            or each["to"]["rank"] not in ranks]


def changed(case, choose):
    """A copy of the copies with one of them changed: choose(copy) is None if it cannot be."""
    order = list(range(len(case.right)))
    case.rng.shuffle(order)
    for i in order[:200]:
        other = choose(copying.deepcopy(case.right[i]))
        if other is not None:
            return [*case.right[:i], *other, *case.right[i + 1 :]]
    return None


def one_missing(case):
    return changed(case, lambda each: [])


def one_twice(case):
    return changed(case, lambda each: [each, each])


def wrong_rank(case):
    def choose(each):
        end = each["from"]
        own = case.source[end["rank"], end["buffer"]]
        for (rank, name), numbers in case.source.items():
            if name == end["buffer"] and len(numbers) == len(own) and numbers != own:
                end["rank"] = rank
                return [each]
        return None

    return changed(case, choose)


def moved(each, by, case):
    each = copying.deepcopy(each)
    end = each["from"]
    end["offset"] += by
    room = len(case.source[end["rank"], end["buffer"]])
    return [each] if 0 <= end["offset"] and max(places(end)) < room else None


def one_row_off(case):
    """A row range of one copy is shifted by a row."""

    def choose(each):
        if each["from"]["extents"][0] < 2:
            return None
        return moved(each, case.rng.choice((-1, 1)) * each["from"]["strides"][0], case)

    return changed(case, choose)


def rows_shifted(case):
    """All that one buffer gets is read n rows further on, as far as the source goes."""
    n = case.rng.randint(1, 3)
    names = [each["to"]["buffer"] for each in case.right if each["from"]["extents"][0] > n]
    if not names:
        return None
    name, out = case.rng.choice(names), []
    for each in case.right:
        if each["to"]["buffer"] == name and each["from"]["extents"][0] > n:
            by = n * each["from"]["strides"][0]
            each = (moved(each, by, case) or [each])[0]
        out.append(each)
    return out


def out_of_buffer(case):
    def choose(each):
        end = each["from"]
        room = len(case.source[end["rank"], end["buffer"]])
        if max(places(end)) + 1 != room or total(each) < 2:
            return None
        end["offset"] += end["strides"][1]
        return [each]

    return changed(case, choose)


def sent_as_tensor(case):
    """As box of a tensor, from a rank that does not have it."""

    def choose(each):
        end = each["from"]
        numbers = case.source[end["rank"], end["buffer"]]
        own = [numbers[place] for place in places(end)]
        for name, of in case.model.tensors.items():
            size = of["shape"][-1]
            first = own[0] - of["first"]
            if len(of["shape"]) != 2 or not 0 <= first < of["shape"][0] * size:
                continue
            row, column = divmod(first, size)
            n = min(len(own), size - column)
            if own[:n] != list(range(own[0], own[0] + n)) or n != len(own):
                return None
            for rank in {rank for rank, _ in case.source}:
                has = any(own[0] in x for (r, _), x in case.source.items() if r == rank)
                if not has:
                    box = f"{row}:{row + 1},{column}:{column + n}"
                    each["from"] = {"rank": rank, "tensor": name, "box": box}
                    each["writes"] = places(each["to"])
                    return [each]
        return None

    return changed(case, choose)


def mega(case):
    return case.train.kind == "megatron"


def moe(case):
    return any(case.model.is_moe(layer) for layer in range(case.model.layers))


# Name, whether a job can have it, how it is planted, words that `looks like` has or might have
# (None: there is no such pattern).
MISTAKES = [
    ("fused qkv read as [q | k | v]", lambda c: mega(c) and not c.model.mla,
     believing("training", qkv_as_blocks=True), "read as ["),
    ("gate and up swapped at the source", mega, believing("training", gate_up="swapped"),
     "for each other"),
    ("gate and up swapped at the destination", lambda c: c.serve.gate_up == "halves",
     believing("serving", gate_up="swapped"), "for each other"),
    ("[up | gate] not heeded", lambda c: c.serve.gate_up == "swapped",
     believing("serving", gate_up="halves"), "for each other"),
    ("halves read as interleaved", mega, believing("training", gate_up="interleaved"),
     "alternated"),
    ("KV heads cut, not repeated",
     lambda c: not c.model.mla and c.model.kv_heads < c.serve.attention(c.serve.first_rank)[1],
     believing("serving", kv_cut=True), "cut into"),
    ("k and v swapped", lambda c: not c.model.mla, believing("serving", kv_swapped=True),
     "for each other"),
    ("tied weight sent once", lambda c: c.model.tied and c.serve.pp > 1, tied_once, "tied"),
    ("ep and etp exchanged", lambda c: mega(c) and c.train.ep > 1 and c.train.etp > 1 and moe(c),
     believing("training", ep_fastest=True), "axes"),
    ("dp and tp exchanged",
     lambda c: mega(c) and c.train.tp > 1 and c.train.dp > 1 and c.train.cp == 1,
     believing("training", dp_fastest=True), "axes"),
    ("experts of the source by round robin", lambda c: mega(c) and c.train.ep > 1 and moe(c),
     believing("training", round_robin=True), "given to"),
    ("experts of the destination by round robin",
     lambda c: c.serve.expert_rule == "linear" and moe(c) and c.serve.expert(0)[1] > 1,
     believing("serving", expert_rule="round robin"), "given to"),
    ("experts linear where they are by round robin",
     lambda c: c.serve.expert_rule == "round robin" and moe(c) and c.serve.expert(0)[1] > 1,
     believing("serving", expert_rule="linear"), "given to"),
    ("redundant slots as at start",
     lambda c: c.serve.expert_rule == "eplb" and moe(c),
     lambda c: believing("serving", slots=[p % c.model.experts
                                           for p in range(len(c.serve.slots))])(c),
     "another map|given to|local"),
    ("experts by an older map", lambda c: c.serve.expert_rule == "eplb" and moe(c), older_map,
     "another map"),
    ("local experts taken for global", moe, local_experts, "local|another map|given to"),
    ("redundant slots forgotten", lambda c: c.serve.expert_rule == "eplb" and moe(c),
     spare_slots_forgotten, None),
    ("vocabulary padded otherwise", lambda c: mega(c) and c.train.tp > 1,
     believing("training", vocab_divisible=1), "shifted"),
    ("column shard read as row shard", lambda c: mega(c) and c.train.tp > 1,
     believing("training", row_parallel_by_rows=True), "were cut, not"),
    ("transposed not heeded", lambda c: mega(c) and c.train.grouped and moe(c),
     believing("training", not_transposed=True), "transposed"),
    ("transposed not heeded at the destination", lambda c: c.serve.transposed and moe(c),
     believing("serving", transposed=False), "transposed"),
    ("mesh order under FSDP2 and TP",
     lambda c: c.train.kind == "fsdp" and c.train.tp > 1 and c.train.shard > 1,
     believing("training", mesh_order=True), "axes|given to"),
    ("flat parameters in forward order",
     lambda c: c.train.kind == "flat" and c.train.reverse and not c.train.each,
     believing("training", reverse=False), "reverse order"),
    ("flat parameters in reverse order",
     lambda c: c.train.kind == "flat" and not c.train.reverse and not c.train.each,
     believing("training", reverse=True), "reverse order"),
    ("layers by another framework's rule, destination", lambda c: c.serve.pp > 1, other_split,
     "divided otherwise"),
    ("layers by another framework's rule, source", lambda c: mega(c) and c.train.pp > 1,
     other_stages, "divided otherwise"),
    ("layers off by one", lambda c: mega(c) and c.model.layers > 1,
     believing("training", layer_shift=1), "numbers of layers"),
    ("layers off by minus one", lambda c: mega(c) and c.model.layers > 2,
     believing("training", layer_shift=-1), "numbers of layers"),
    ("bytes though a side converts", lambda c: c.job.converted, in_bytes, "in bytes"),
    ("a tensor's box from a rank without it", lambda c: True, sent_as_tensor, None),
    ("shifted by n rows", lambda c: True, rows_shifted, "shifted"),
    ("a row range shifted by one", lambda c: True, one_row_off, "shifted"),
    ("a copy missing", lambda c: True, one_missing, None),
    ("a copy twice", lambda c: True, one_twice, None),
    ("wrong source rank", lambda c: True, wrong_rank, None),
    ("read beyond the end", lambda c: True, out_of_buffer, None),
]
# Of these `looks like` always has the words; of others where nothing hides the pattern.
ALWAYS_NAMED = {
    "fused qkv read as [q | k | v]", "gate and up swapped at the source",
    "gate and up swapped at the destination", "[up | gate] not heeded", "k and v swapped",
    "tied weight sent once", "vocabulary padded otherwise",
}  # fmt: skip
