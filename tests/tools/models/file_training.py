# SPDX-License-Identifier: BSD-3-Clause
"""Lines for Megatron-Core, FSDP2, FSDP1 and ZeRO-3."""

from models.file_lines import ranks_text
from models.model import SCALE
from models.numbers import shares
from models.training import COLWISE, ROWWISE, expert_name, registered_at


def write(lines, place):
    {"megatron": MegatronLines, "fsdp": FsdpLines, "flat": FlatLines}[place.kind](
        lines, place).write()


class MegatronLines:
    def __init__(self, lines, place):
        self.lines, self.model, self.place, self.put = lines, lines.model, place, lines.put

    def stage(self, pp):
        p, base = self.place, self.place.first_rank
        inner = p.tp * p.cp
        if p.dp_outermost:
            starts = [base + (dp * p.pp + pp) * inner for dp in range(p.dp)]
        else:
            starts = [base + (pp * p.dp + dp) * inner for dp in range(p.dp)]
        self.ranks = [start + i for start in starts for i in range(inner)]
        ranks = ranks_text(self.ranks)
        self.dense = (f"dp={p.dp},cp={p.cp},tp={p.tp}", ranks)
        edp = len(self.ranks) // (p.etp * p.ep)
        self.expert = (f"edp={edp},ep={p.ep},etp={p.etp}", ranks)

    def write(self):
        model, place = self.model, self.place
        for pp in range(place.pp):
            self.stage(pp)
            pad = f" pad{place.vocab_divisible * place.tp}"
            if pp == 0:
                name = "embedding.word_embeddings.weight"
                self.put(name, self.dense, "embed_tokens.weight" + pad, "RRS(0)")
            for c, layers in enumerate(self.chunks(pp)):
                chunk = f"chunk{c}." if place.vpp > 1 else ""
                for i, layer in enumerate(layers):
                    self.layer(f"layers.{layer}.", f"{chunk}decoder.layers.{i}.", layer)
            if pp == place.pp - 1:
                self.put("decoder.final_layernorm.weight", self.dense, "norm.weight")
                if place.pp > 1 or not model.tied:
                    name = "output_layer.weight"
                    self.put(name, self.dense, "lm_head.weight" + pad, "RRS(0)")

    def chunks(self, pp):
        """Layers are dealt chunk by chunk."""
        place = self.place
        dealt, chunks = 0, []
        for c in range(place.vpp):
            for stage in range(place.pp):
                count = place.split[stage] // place.vpp
                if stage == pp:
                    chunks.append(range(dealt, dealt + count))
                dealt += count
        return chunks

    def layer(self, p, to, layer):
        model, place, put, dense = self.model, self.place, self.put, self.dense
        own, attn, moe = to + "self_attention.", p + "self_attn.", model.is_moe(layer)
        name = own + "linear_qkv.layer_norm_weight"
        if model.mla or not place.te:
            name = to + "input_layernorm.weight"
        put(name, dense, p + "input_layernorm.weight")
        name = "mlp.linear_fc1.layer_norm_weight" if place.te and not moe else (
            "pre_mlp_layernorm.weight")
        put(to + name, dense, p + "post_attention_layernorm.weight")
        (self.mla if model.mla else self.attention)(attn, own)
        put(own + "linear_proj.weight", dense, attn + "o_proj.weight", "RRS(1)", scaled=True)
        if not moe:
            self.mlp(p + "mlp.", to + "mlp.")
            return
        put(to + "mlp.router.weight", dense, p + "mlp.gate.weight")
        put(to + "mlp.router.expert_bias", dense, p + "mlp.gate.e_score_correction_bias")
        if model.shared:
            self.mlp(p + "mlp.shared_experts.", to + "mlp.shared_experts.")
        if place.grouped:
            self.grouped(p + "mlp.experts.", to + "mlp.experts.")
        else:
            self.experts(p + "mlp.experts.", to + "mlp.experts.")

    def attention(self, attn, own):
        model, put, dense = self.model, self.put, self.dense
        qkv = [f"{attn}{x}_proj" for x in "qkv"]
        group = lambda leaf: [f"{qkv[0]}.{leaf}:{model.heads // model.kv_heads} "
                              f"{qkv[1]}.{leaf}:1 {qkv[2]}.{leaf}:1 x{model.head}"]
        put(own + "linear_qkv.weight", dense, group("weight"), "RRS(0)", scaled=True)
        if model.biases:
            put(own + "linear_qkv.bias", dense, group("bias"), "RRS(0)")
            put(own + "linear_proj.bias", dense, attn + "o_proj.bias")
        if model.qk_norm:
            put(own + "q_layernorm.weight", dense, attn + "q_norm.weight")
            put(own + "k_layernorm.weight", dense, attn + "k_norm.weight")

    def mla(self, attn, own):
        te, dense = self.place.te, self.dense
        put = lambda name, of, cut: self.put(f"{own}{name}.weight", dense, f"{attn}{of}.weight",
                                             "RRS(0)" if cut else "", scaled=True)
        norm = lambda name, of: self.put(own + name, dense, f"{attn}{of}.weight")
        if self.model.q_rank:
            put("linear_q_down_proj", "q_a_proj", not te)
            put("linear_q_up_proj", "q_b_proj", True)
            norm("linear_q_up_proj.layer_norm_weight" if te else "q_layernorm.weight",
                 "q_a_layernorm")
        else:
            put("linear_q_proj", "q_proj", True)
        put("linear_kv_down_proj", "kv_a_proj_with_mqa", not te)
        put("linear_kv_up_proj", "kv_b_proj", True)
        norm("linear_kv_up_proj.layer_norm_weight" if te else "kv_layernorm.weight",
             "kv_a_layernorm")

    def mlp(self, p, to):
        self.put(to + "linear_fc1.weight", self.dense, halves(p), "RRS(0)", scaled=True)
        self.put(to + "linear_fc2.weight", self.dense, p + "down_proj.weight", "RRS(1)",
                 scaled=True)

    def experts(self, p, to):
        """weight{i} of ep rank r is expert r El + i."""
        model, local = self.model, self.model.experts // self.place.ep
        for i in range(local):
            own = [[r * local + i] for r in range(self.place.ep)]
            for name, fused, cut in experts_of(model, p):
                where = {"axis": "ep", "indices": own}
                if model.stacked:
                    more = {"dim": 1 if cut == "rows" else 0, "map": where}
                    placements = "RRS(1)" if cut == "rows" else "RRS(2)"
                else:
                    more = {"map": {**where, "blocks": 2 if cut == "rows" else 1}}
                    placements = "RRS(0)" if cut == "rows" else "RRS(1)"
                name = "linear_fc1" if cut == "rows" else "linear_fc2"
                name = expert_name(self.place, to, name, i)
                self.put(name, self.expert, fused, placements, scaled=True, **more)

    def grouped(self, p, to):
        """[El, in, out], the experts of a rank in one buffer."""
        model, place = self.model, self.place
        for name, fused, cut in experts_of(model, p):
            name = "weight1" if cut == "rows" else "weight2"
            if model.stacked:
                more = {"dim": 1 if cut == "rows" else 0, "order": [0, 2, 1]}
                placements = "RS(0)S(1)" if cut == "rows" else "RS(0)S(2)"
                self.put(to + name, self.expert, fused, placements, scaled=True, **more)
                continue
            self.put(to + name, self.expert, fused, "RRS(0)" if cut == "rows" else "RRS(1)",
                     scaled=True, order=[1, 0], stack=len(fused) // model.experts,
                     map={"axis": "ep", "blocks": len(fused) // model.experts, "rule": "even"})


def halves(p, swapped=False):
    out = [p + "gate_proj.weight", p + "up_proj.weight"]
    return out[::-1] if swapped else out


def experts_of(model, p, swapped=False):
    """(name, blocks, what expert parallelism by tensor cuts) of both matrices of all experts."""
    if model.stacked:
        return [("gate_up", halves(p, swapped), "rows"),
                ("down", [p + "down_proj.weight"], "columns")]
    experts = range(model.experts)
    return [("gate_up", [x for e in experts for x in halves(f"{p}{e}.", swapped)], "rows"),
            ("down", [f"{p}{e}.down_proj.weight" for e in experts], "columns")]


def tp_first(rows, tp):
    """Rows that tp cuts first and FSDP2 then. PyTorch prints a strided shard; where tp does not
    divide the rows, that is not what the ranks have."""
    if tp == 1:
        return "RS(0)R"
    return f"R_S(0,{tp})S(0)" if rows % tp == 0 else "RS(0)[1]S(0)[0]"


class FsdpLines:
    def __init__(self, lines, place):
        self.lines, self.model, self.place, self.put = lines, lines.model, place, lines.put
        first = place.first_rank
        self.where = (f"rep={place.rep},shard={place.shard},tp={place.tp}",
                      f"{first}-{first + place.ranks - 1}")

    def placements(self, name):
        if name.endswith(SCALE):
            return ""
        if self.place.tp > 1 and ".experts." not in name:
            if name.rsplit(".", 2)[-2] in COLWISE:
                return tp_first(self.model.tensors[name]["shape"][0], self.place.tp)
            if name.endswith(ROWWISE):
                return "RS(0)S(1)"
        return "RS(0)R"

    def write(self):
        model, place = self.model, self.place
        fused = [x for x in ("q", "k", "v") if place.fused and not model.mla]
        for name in model.tensors:
            of = name.rpartition("self_attn.")[2].partition("_proj")[0]
            half = name.rpartition("gate_proj.")
            if model.tied and name == "lm_head.weight":
                continue
            if ".experts." in name and place.experts_fused:
                continue
            if fused and of in fused and "self_attn" in name and "_norm" not in name:
                if of == "q":
                    self.put_qkv(name)
            elif place.fused and ".experts." not in name and half[1]:
                rows = model.tensors[name]["shape"][0] // place.tp
                block = f"{name}:1 {half[0]}up_proj.{half[2]}:1 x{rows}"
                self.put(f"{half[0]}gate_up_proj.{half[2]}", self.where, [block],
                         tp_first(rows * place.tp, place.tp))
            elif not (place.fused and ".experts." not in name and "up_proj." in name):
                self.put(name, self.where, name, self.placements(name))
        for layer in range(model.layers):
            if model.is_moe(layer) and place.experts_fused:
                self.experts(f"layers.{layer}.mlp.experts.")

    def put_qkv(self, name):
        model, tp = self.model, self.place.tp
        k, v = (name.replace("q_proj", f"{x}_proj") for x in "kv")
        heads = model.kv_heads // tp
        block = f"{name}:{model.heads // tp} {k}:{heads} {v}:{heads} x{model.head}"
        self.put(name.replace("q_proj", "qkv_proj"), self.where, [block], tp_first(tp, tp))

    def experts(self, p):
        model, place = self.model, self.place
        other = place.experts_fused == "gpt_oss"
        ep = place.tp if place.tp_is_ep else 1
        outer = shares(model.experts, ep)
        sizes = [n for own in outer for n in shares(own, place.shard)]
        if ep == 1:
            sizes, axes = sizes[: place.shard], ["shard"]
        else:
            axes = ["tp", "shard"]
        for name, fused, cut in experts_of(model, p):
            to = f"{p}{name}_proj"
            if model.stacked:
                if other and cut == "rows":
                    fused = [f"{fused[0]}:1 {fused[1]}:1 x1"]
                self.put(to, self.where, fused, tp_first(model.experts, ep),
                         dim=1 if cut == "rows" else 0, order=[0, 2, 1] if other else None)
            elif not other:
                blocks = 2 if cut == "rows" else 1
                self.put(to, self.where, fused,
                         map={"axis": axes, "blocks": blocks, "sizes": sizes})
            else:
                # Each expert's matrix transposed, and gate and up in turns along its columns.
                if cut == "rows":
                    fused = [f"{x}:1 {y}:1 x1" for x, y in zip(fused[::2], fused[1::2])]
                self.put(to, self.where, fused, order=[1, 0], stack=1,
                         map={"axis": axes, "blocks": 1, "sizes": sizes})


class FlatLines:
    def __init__(self, lines, place):
        self.lines, self.model, self.place = lines, lines.model, place

    def write(self):
        model, place, lines = self.model, self.place, self.lines
        groups = {}
        names = [name for name, of in model.tensors.items() if "alias_of" not in of]
        for name in reversed(names) if place.reverse else sorted(names, key=registered_at):
            layer = ".".join(name.split(".")[:2]) if name.startswith("layers.") else "root"
            alone = place.each or "e_score" in name
            groups.setdefault(name if alone else f"{layer}.flat", []).append(name)
        ranks = f"{place.first_rank}-{place.first_rank + place.ranks - 1}"
        for name, tensors in groups.items():
            line = {"side": lines.side, "buffer": name, "mesh": str(place.shard), "ranks": ranks,
                    "flat": tensors, "align": place.align, "pad": place.flat_pad}
            lines.finish(name, line, False)
