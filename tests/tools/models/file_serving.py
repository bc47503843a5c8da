# SPDX-License-Identifier: BSD-3-Clause
"""Lines for vLLM and SGLang."""

from models.file_lines import ranks_text
from models.file_training import experts_of, halves


def write(lines, place):
    ServingLines(lines, place).write()


class ServingLines:
    def __init__(self, lines, place):
        self.lines, self.model, self.place, self.put = lines, lines.model, place, lines.put

    def stage(self, pp):
        """The meshes of a stage: of attention, of dense layers, of experts."""
        p, base = self.place, self.place.first_rank
        if p.kind == "vllm":
            self.ranks = [base + (dp * p.pp + pp) * p.tp + tp
                          for dp in range(p.dp) for tp in range(p.tp)]
            ranks = ranks_text(self.ranks)
            self.attention = self.dense = (f"dp={p.dp},tp={p.tp}", ranks)
            n = p.dp * p.tp
            self.experts = (f"rep=1,ep={n},tp=1" if p.ep_on else f"rep=1,ep=1,tp={n}", ranks)
            self.grid = (n, 1) if p.ep_on else (1, n)
            return
        self.ranks = list(range(base + pp * p.tp, base + (pp + 1) * p.tp))
        ranks = f"{self.ranks[0]}-{self.ranks[-1]}"
        self.attention = (f"dp={p.dp},tp={p.tp // p.dp}", ranks)
        self.dense = (f"one=1,tp={p.tp}", ranks)
        moe_tp = p.tp // p.ep // p.moe_dp
        self.experts = (f"rep={p.moe_dp},ep={p.ep},tp={moe_tp}", ranks)
        self.grid = (p.ep, moe_tp)

    def write(self):
        model, place, put = self.model, self.place, self.put
        for pp in range(place.pp):
            self.stage(pp)
            pad, last = f" pad{place.vocab_divisible}", pp == place.pp - 1
            if pp == 0 or (last and model.tied and place.kind == "vllm"):
                name = "lm_head.weight" if pp else "embed_tokens.weight"
                put("model.embed_tokens.weight", self.attention, name + pad, "RS(0)")
            first = sum(place.split[:pp])
            for layer in range(first, first + place.split[pp]):
                self.layer(f"layers.{layer}.", f"model.layers.{layer}.", model.is_moe(layer))
            if last:
                put("model.norm.weight", self.attention, "norm.weight")
                if not model.tied or (pp > 0 and place.kind == "sglang"):
                    at = self.dense if place.kind == "sglang" else self.attention
                    put("lm_head.weight", at, "lm_head.weight" + pad, "RS(0)")

    def layer(self, p, to, moe):
        model, put, at = self.model, self.put, self.attention
        for name in ("input_layernorm.weight", "post_attention_layernorm.weight"):
            put(to + name, at, p + name)
        attn = "self_attn."
        (self.mla if model.mla else self.qkv)(p + attn, to + attn)
        name = attn + "o_proj.weight"
        put(to + name, at, p + name, "RS(1)", scaled=True)
        if not moe:
            self.mlp(p + "mlp.", to + "mlp.")
            return
        for name in ("mlp.gate.weight", "mlp.gate.e_score_correction_bias"):
            put(to + name, at, p + name)
        if model.shared:
            whole = self.place.has_whole_shared(model)
            self.mlp(p + "mlp.shared_experts.", to + "mlp.shared_experts.", whole)
        self.moe(p + "mlp.experts.", to + "mlp.experts.")

    def qkv(self, p, to):
        model, put, at = self.model, self.put, self.attention
        head = f" x{model.head} repeat"
        fused = lambda leaf: [f"{p}q_proj.{leaf}", f"{p}k_proj.{leaf}{head}",
                              f"{p}v_proj.{leaf}{head}"]
        put(to + "qkv_proj.weight", at, fused("weight"), "RS(0)", scaled=True)
        if model.biases:
            put(to + "qkv_proj.bias", at, fused("bias"), "RS(0)")
            put(to + "o_proj.bias", at, p + "o_proj.bias")
        if model.qk_norm:
            put(to + "q_norm.weight", at, p + "q_norm.weight")
            put(to + "k_norm.weight", at, p + "k_norm.weight")

    def mla(self, p, to):
        put, at = self.put, self.attention
        kv_a = "kv_a_proj_with_mqa.weight"
        if self.model.q_rank:
            latents = [p + "q_a_proj.weight", p + kv_a]
            put(f"{to}{self.place.latents}.weight", at, latents, scaled=True)
            put(to + "q_a_layernorm.weight", at, p + "q_a_layernorm.weight")
        else:
            put(to + kv_a, at, p + kv_a, scaled=True)
        q = "q_b_proj.weight" if self.model.q_rank else "q_proj.weight"
        put(to + q, at, p + q, "RS(0)", scaled=True)
        put(to + "kv_a_layernorm.weight", at, p + "kv_a_layernorm.weight")
        put(to + "kv_b_proj.weight", at, p + "kv_b_proj.weight", "RS(0)", scaled=True)

    def mlp(self, p, to, is_whole=False):
        swapped = self.place.gate_up == "swapped"
        rows, columns = ("RR", "RR") if is_whole else ("RS(0)", "RS(1)")
        self.put(to + "gate_up_proj.weight", self.dense, halves(p, swapped), rows, scaled=True)
        name = "down_proj.weight"
        self.put(to + name, self.dense, p + name, columns, scaled=True)

    def moe(self, p, to):
        model, place = self.model, self.place
        where = {"axis": "ep"}
        if place.expert_rule == "eplb":
            where["indices"] = place.slots
        else:
            where["rule"] = {"linear": "remainder first"}.get(place.expert_rule, "round robin")
        for name, fused, cut in experts_of(model, p, place.gate_up == "swapped"):
            to_name, by_rows = to + ("w13_weight" if cut == "rows" else "w2_weight"), cut == "rows"
            pad = [place.expert_pad, 1] if by_rows else [1, place.expert_pad]
            more = {"pad": ([1] if model.stacked else []) + pad} if place.expert_pad > 1 else {}
            if model.stacked:
                more |= {"dim": 1 if by_rows else 0, "map": where,
                         "order": [0, 2, 1] if place.transposed else None}
                placements = "RRS(1)" if by_rows else "RRS(2)"
            else:
                count = 2 if by_rows else 1
                more["map"] = {**where, "blocks": count}
                if place.transposed:
                    more |= {"order": [1, 0], "stack": count}
                placements = "RRS(0)" if by_rows else "RRS(1)"
            self.put(to_name, self.experts, fused, placements, scaled=True, **more)
