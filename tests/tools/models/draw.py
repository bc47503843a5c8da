# SPDX-License-Identifier: BSD-3-Clause
"""A job from a seed: a small model, how it lies for training and for serving."""

import math
import random

from models.model import Model
from models.places import (Fsdp, Megatron, Sglang, Vllm, megatron_splits, sglang_split,
                           vllm_split)  # fmt: skip
from models.serving import of_serving
from models.training import of_flat, of_fsdp, of_megatron

MOST_RANKS = 12
TRIES = 10_000


class Job:
    def __init__(self, seed, kinds=("megatron", "fsdp", "flat")):
        self.seed = seed
        rng = self.rng = random.Random(f"models/{seed}")
        moe, mla = rng.random() < 0.55, rng.random() < 0.2
        kind = rng.choices(kinds, (6, 4, 1)[: len(kinds)])[0]
        serving = rng.choice((self.vllm, self.sglang))
        for _ in range(TRIES):
            self.training = getattr(self, kind)(moe)
            self.serving = serving(moe)
            sizes = self.sizes(moe, mla)
            if sizes and self.fit(sizes):
                break
        else:
            raise AssertionError(f"seed {seed}: nothing fits")
        self.model = Model(sizes)
        # A side may hold its weights in another dtype and convert them.
        plain = rng.random() < 0.8
        self.converted = None if plain else rng.choice(("training", "serving"))
        base = rng.choice((0, self.training.ranks, self.training.ranks + 3))
        self.serving.first_rank = base
        self.back = rng.random() < 0.15  # from serving to training

    # ---- training ----
    def megatron(self, moe):
        rng = self.rng
        tp, cp, dp, pp = (rng.choice(of) for of in ((1, 2, 4), (1, 1, 2), (1, 2), (1, 1, 2, 3)))
        etp = rng.choice((1, 2, tp)) if moe else tp
        ep = rng.choice((1, 2, 4)) if moe else 1
        dp_outermost = etp * ep == tp * cp and rng.random() < 0.3
        return Megatron(
            kind="megatron", tp=tp, cp=cp, dp=dp, pp=pp, etp=etp, ep=ep, vpp=rng.choice((1, 1, 2)),
            first_rank=0, ranks=tp * cp * dp * pp, dp_outermost=dp_outermost,
            te=rng.random() < 0.6, grouped=rng.random() < 0.3, gate_up="halves",
            vocab_divisible=rng.choice((4, 16)), split=None, pad_alike=False,
            # What nobody does, but somebody believes:
            dp_fastest=False, ep_fastest=False, qkv_as_blocks=False, round_robin=False,
            layer_shift=0, not_transposed=False, row_parallel_by_rows=False,
        )  # fmt: skip

    def fsdp(self, moe):
        rng = self.rng
        tp, fused = rng.choice((1, 1, 2, 4)), rng.random() < 0.4
        rep, shard = rng.choice((1, 1, 2)), rng.choice((1, 2, 3, 4, 5))
        return Fsdp(
            kind="fsdp", tp=tp, rep=rep, shard=shard, first_rank=0, ranks=tp * rep * shard,
            fused=fused, experts_fused=rng.choice(("", "hf", "gpt_oss")) if moe else "",
            tp_is_ep=rng.random() < 0.5, pad_alike=rng.random() < 0.3, mesh_order=False,
        )  # fmt: skip

    def flat(self, _):
        rng = self.rng
        shard = rng.choice((2, 3, 4, 8))
        return Fsdp(
            kind="flat", tp=1, rep=1, shard=shard, first_rank=0, ranks=shard, fused=False,
            experts_fused="", each=rng.random() < 0.4, reverse=rng.random() < 0.5,
            align=rng.choice((1, 1, 64)), flat_pad=rng.choice((1, 128)), pad_alike=False,
        )  # fmt: skip

    # ---- serving ----
    def vllm(self, moe):
        rng = self.rng
        tp, dp, pp = (rng.choice(of) for of in ((1, 2, 4), (1, 1, 2), (1, 1, 2, 3)))
        ep_on = rng.random() < 0.6
        rules = ("linear", "round robin", "eplb") if ep_on else ("linear",)
        return Vllm(kind="vllm", tp=tp, dp=dp, pp=pp, ranks=tp * dp * pp, ep_on=ep_on,
                    expert_rule=rng.choice(rules), **self.served(64))

    def sglang(self, moe):
        rng = self.rng
        tp, pp = rng.choice((1, 2, 4)), rng.choice((1, 1, 2, 3))
        dp = rng.choice([n for n in (1, 1, 2, 4) if tp % n == 0])
        ep = rng.choice([n for n in (1, 2, 4) if tp % n == 0]) if moe else 1
        moe_dp = rng.choice([n for n in (1, 1, 1, 2) if tp // ep % n == 0])
        return Sglang(kind="sglang", tp=tp, dp=dp, pp=pp, ep=ep, moe_dp=moe_dp, ranks=tp * pp,
                      expert_rule=rng.choice(("linear", "eplb")),
                      **self.served(64, gate_up=rng.choice(("halves", "halves", "swapped")),
                                    transposed=rng.random() < 0.2))

    def served(self, vocab, gate_up="halves", transposed=False):
        pad = self.rng.choice((1, 1, 1, 4))
        return dict(first_rank=0, vocab_divisible=vocab, gate_up=gate_up, transposed=transposed,
                    expert_pad=pad, slots=None, kv_cut=False, kv_swapped=False, split=None)

    # ---- the model ----
    def sizes(self, moe, mla):
        rng, train, serve = self.rng, self.training, self.serving
        fp8 = rng.choice((0, 0, 0, 2))
        unit = fp8 or 1
        n = math.lcm(train.tp if train.kind == "megatron" else 1, serve.tp)
        kv_heads = rng.choice((1, 2, 4))
        expert_n = serve.expert(0)[3]
        if train.kind == "megatron":
            expert_n = math.lcm(expert_n, train.etp)
        experts = rng.choice((3, 4, 5, 6, 8)) if moe else 0
        layers = rng.randint(1, 5)
        return dict(
            layers=layers, hidden=rng.randint(2, 6) * unit, vocab=rng.randint(20, 90),
            heads=kv_heads * rng.choice((1, 2, 3, 4)), kv_heads=kv_heads,
            head=rng.randint(2, 3) * unit, ffn=n * unit * rng.randint(1, 3),
            tied=rng.random() < 0.4, biases=rng.random() < 0.4, qk_norm=rng.random() < 0.4,
            fp8=fp8, mla=mla,
            q_rank=rng.choice((0, 4, 8)), kv_rank=rng.choice((4, 8)), nope=unit * rng.randint(1, 2),
            rope=unit * rng.randint(1, 2), value=unit * rng.randint(1, 2), experts=experts,
            expert_ffn=expert_n * unit * rng.randint(1, 2),
            dense_layers=rng.randint(0, 1), shared=rng.choice((0, n * unit)),
            stacked=rng.random() < 0.5,
        )  # fmt: skip

    def fit(self, sizes):
        """Whether the frameworks accept it; also chooses what depends on sizes."""
        train, serve = self.training, self.serving
        if max(train.ranks, serve.ranks) > MOST_RANKS or serve.pp > sizes["layers"]:
            return False
        serve.split = (vllm_split if serve.kind == "vllm" else sglang_split)(
            sizes["layers"], serve.pp)
        if min(serve.split) == 0 or not self.heads_fit(sizes):
            return False
        if sizes["experts"] and not self.experts_fit(sizes):
            return False
        if train.kind == "megatron":
            return self.megatron_fits(sizes)
        if train.fused and any(sizes[key] % train.tp for key in (
                "heads", "kv_heads", "ffn", "shared")):
            return False
        whole = train.kind == "fsdp" and not (train.fused or train.experts_fused)
        return whole or not sizes["fp8"]

    def heads_fit(self, sizes):
        n, kv_heads, fp8 = self.serving.attention(0)[1], sizes["kv_heads"], sizes["fp8"] or 1
        tp = self.training.tp if self.training.kind == "megatron" else 1
        if sizes["heads"] % math.lcm(n, tp):
            return False
        rows = (sizes["heads"] + 2 * kv_heads) * sizes["head"]
        fused = rows % tp == 0 and rows // tp % fp8 == 0
        return sizes["mla"] or (fused and (kv_heads % n == 0 or n % kv_heads == 0))

    def experts_fit(self, sizes):
        serve, experts = self.serving, sizes["experts"]
        ep = serve.expert(0)[1]
        if ep > experts:
            return False
        if serve.expert_rule == "eplb":
            redundant = -experts % ep + ep * self.rng.randint(0, 1)
            serve.slots = [p % experts for p in range(experts + redundant)]
            if self.rng.random() < 0.5:  # as the balancer left them
                self.rng.shuffle(serve.slots)
        if serve.kind == "sglang" and serve.expert_rule != "eplb" and experts % ep:
            return False
        return serve.kind == "vllm" or experts % ep == 0 or serve.expert_rule == "eplb"

    def megatron_fits(self, sizes):
        place, layers = self.training, sizes["layers"]
        splits = megatron_splits(layers, place.pp)
        if not splits or place.ranks // place.pp % (place.etp * place.ep):
            return False
        place.split = self.rng.choice(splits)
        even = len(set(place.split)) == 1 and place.split[0] % place.vpp == 0
        if place.vpp > 1 and (not even or place.pp == 1):
            return False
        if sizes["experts"] and sizes["experts"] % place.ep:
            return False
        ranks_cut = [sizes["kv_rank"] + sizes["rope"], sizes["q_rank"]]
        if sizes["mla"] and not place.te:
            unit = sizes["fp8"] or 1
            return all(n % (place.tp * unit) == 0 for n in ranks_cut)
        return True

    def buffers(self, which, place=None):
        """{(rank, buffer): nested numbers} of `training` or `serving`, or as a place believes."""
        place = place or getattr(self, which)
        make = {"megatron": of_megatron, "fsdp": of_fsdp, "flat": of_flat}.get(
            place.kind, of_serving)
        out = {}
        for rank in range(place.first_rank, place.first_rank + place.ranks):
            for name, numbers in make(self.model, place, rank).items():
                out[rank, name] = numbers
        return out

    def __str__(self):
        text = lambda of: " ".join(f"{key}={value}" for key, value in of.items()
                                   if key not in ("tensors", "elements") and value)
        places = [f"[{text(vars(place))}]" for place in (self.training, self.serving)]
        return f"{' '.join(places)} {text(vars(self.model))}"

    def sides(self):
        """(source, destination)."""
        return ("serving", "training") if self.back else ("training", "serving")
