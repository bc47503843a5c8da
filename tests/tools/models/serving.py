# SPDX-License-Identifier: BSD-3-Clause
"""What each rank of vLLM and SGLang has in memory after loading."""

from models.model import SCALE
from models.numbers import columns, cut, interleaved, padded, padded_columns, transposed


def of_serving(model, place, rank):
    return ServingRank(model, place, rank).buffers()


def experts_on(place, experts, ep_rank, ep):
    """The logical experts of a rank's slots, in memory order."""
    if place.expert_rule == "eplb":  # slots of all ranks one after another
        return cut(place.slots, ep, ep_rank)
    if place.expert_rule == "round robin":
        return list(range(ep_rank, experts, ep))
    base, rest = divmod(experts, ep)
    first = ep_rank * base + min(ep_rank, rest)
    return list(range(first, first + base + (ep_rank < rest)))


class ServingRank:
    def __init__(self, model, place, rank):
        self.model, self.place, self.out = model, place, {}
        self.stage = place.stage(rank)
        self.ar, self.an = place.attention(rank)
        self.dr, self.dn = place.dense(rank)
        self.expert_rank = place.expert(rank)

    def buffers(self):
        model, last = self.model, self.place.pp - 1
        if self.stage == 0:
            self.out["model.embed_tokens.weight"] = self.vocab("embed_tokens.weight")
        for layer in self.place.layers_of(self.stage):
            self.layer(f"layers.{layer}.", f"model.layers.{layer}.", model.is_moe(layer))
        if self.stage == last:
            self.out["model.norm.weight"] = model["norm.weight"]
            if model.tied and last > 0 and self.place.kind == "vllm":
                self.out["model.embed_tokens.weight"] = self.vocab("embed_tokens.weight")
            elif not model.tied or last > 0:
                self.out["lm_head.weight"] = self.head("lm_head.weight")
        return self.out

    def vocab(self, name):
        return cut(padded(self.model[name], self.place.vocab_divisible), self.an, self.ar)

    def head(self, name):
        """SGLang cuts it by all ranks of a stage, even where attention is data-parallel."""
        n, r = (self.dn, self.dr) if self.place.kind == "sglang" else (self.an, self.ar)
        return cut(padded(self.model[name], self.place.vocab_divisible), n, r)

    def put(self, name, make):
        self.out[name] = make("")
        if self.model.fp8:
            self.out[name + SCALE] = make(SCALE)

    def layer(self, p, to, moe):
        model = self.model
        self.out[to + "input_layernorm.weight"] = model[p + "input_layernorm.weight"]
        name = "post_attention_layernorm.weight"
        self.out[to + name] = model[p + name]
        if model.mla:
            self.mla(p + "self_attn.", to + "self_attn.")
        else:
            self.attention(p + "self_attn.", to + "self_attn.")
        if not moe:
            self.mlp(p + "mlp.", to + "mlp.")
            return
        for name in ("mlp.gate.weight", "mlp.gate.e_score_correction_bias"):
            self.out[to + name] = model[p + name]
        if model.shared:
            whole = self.place.has_whole_shared(model)
            self.mlp(p + "mlp.shared_experts.", to + "mlp.shared_experts.", whole)
        self.experts(p, to + "mlp.experts.")

    def kv(self, x):
        """The rank's KV heads: one that several ranks have, or some."""
        heads, n, r = self.model.kv_heads, self.an, self.ar
        if heads < n and self.place.kv_cut:
            own = len(x) // heads
            piece = cut(x, n, r)
            return piece + [-1 if isinstance(x[0], int) else [-1] * len(x[0])] * (own - len(piece))
        return cut(x, heads, r // (n // heads)) if heads < n else cut(x, n, r)

    def qkv(self, attn, suffix):
        q, k, v = (self.model[attn + name + "_proj" + suffix] for name in "qkv")
        if self.place.kv_swapped:
            k, v = v, k
        return cut(q, self.an, self.ar) + self.kv(k) + self.kv(v)

    def attention(self, p, to):
        model, n, r = self.model, self.an, self.ar
        self.put(to + "qkv_proj.weight", lambda s: self.qkv(p, ".weight" + s))
        self.put(to + "o_proj.weight", lambda s: columns(model[p + "o_proj.weight" + s], cut, n, r))
        if model.biases:
            self.out[to + "qkv_proj.bias"] = self.qkv(p, ".bias")
            self.out[to + "o_proj.bias"] = model[p + "o_proj.bias"]
        if model.qk_norm:
            self.out[to + "q_norm.weight"] = model[p + "q_norm.weight"]
            self.out[to + "k_norm.weight"] = model[p + "k_norm.weight"]

    def mla(self, p, to):
        model, n, r = self.model, self.an, self.ar
        by_heads = lambda name: lambda s: cut(model[p + name + s], n, r)
        kv_a = "kv_a_proj_with_mqa.weight"
        if model.q_rank:
            self.put(to + self.place.latents + ".weight",
                     lambda s: model[p + "q_a_proj.weight" + s] + model[p + kv_a + s])
            self.out[to + "q_a_layernorm.weight"] = model[p + "q_a_layernorm.weight"]
            self.put(to + "q_b_proj.weight", by_heads("q_b_proj.weight"))
        else:
            self.put(to + kv_a, lambda s: model[p + kv_a + s])
            self.put(to + "q_proj.weight", by_heads("q_proj.weight"))
        self.out[to + "kv_a_layernorm.weight"] = model[p + "kv_a_layernorm.weight"]
        self.put(to + "kv_b_proj.weight", by_heads("kv_b_proj.weight"))
        self.put(to + "o_proj.weight", lambda s: columns(model[p + "o_proj.weight" + s], cut, n, r))

    def joined(self, gate, up):
        if self.place.gate_up == "swapped":
            return up + gate
        return interleaved(gate, up) if self.place.gate_up == "interleaved" else gate + up

    def mlp(self, p, to, is_whole=False):
        model, n, r = self.model, self.dn, self.dr
        if is_whole:
            n, r = 1, 0
        part = lambda name: cut(model[p + name], n, r)
        self.put(to + "gate_up_proj.weight",
                 lambda s: self.joined(part("gate_proj.weight" + s), part("up_proj.weight" + s)))
        self.put(to + "down_proj.weight",
                 lambda s: columns(model[p + "down_proj.weight" + s], cut, n, r))

    def experts(self, p, to):
        ep_rank, ep, r, n = self.expert_rank
        own = experts_on(self.place, self.model.experts, ep_rank, ep)
        pad = self.place.expert_pad
        part = lambda e, name: cut(self.model.expert(p, e, name), n, r)
        way = transposed if self.place.transposed else lambda x: x

        def w13(s):
            fill = padded if not s else lambda x, _: x
            return [way(self.joined(fill(part(e, "gate_proj.weight!" + s), pad),
                                    fill(part(e, "up_proj.weight!" + s), pad))) for e in own]

        def w2(s):
            fill = padded_columns if not s else lambda x, _: x
            return [way(fill(columns(self.model.expert(p, e, "down_proj.weight!" + s), cut, n, r),
                             pad)) for e in own]

        self.put(to + "w13_weight", w13)
        self.put(to + "w2_weight", w2)
