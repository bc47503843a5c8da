# SPDX-License-Identifier: BSD-3-Clause
"""What each rank of Megatron-Core, FSDP2, FSDP1 and ZeRO-3 has in memory: the model's tensors built
whole and cut as the frameworks cut them."""

from models.model import SCALE
from models.numbers import chunk, columns, cut, flat, interleaved, padded, transposed


def of_megatron(model, place, rank):
    return MegatronRank(model, place, rank).buffers()


class MegatronRank:
    def __init__(self, model, place, rank):
        self.model, self.place, self.out = model, place, {}
        self.tp, self.r = place.tp, place.tp_rank(rank)
        self.stage = place.stage(rank)
        self.ep, self.etp = place.expert_coordinates(rank)

    def buffers(self):
        model, stage = self.model, self.stage
        if stage == 0:
            self.out["embedding.word_embeddings.weight"] = self.vocab("embed_tokens.weight")
        for c, layers in enumerate(self.place.chunks(stage)):
            for i, layer in enumerate(layers):
                chunk_name = f"chunk{c}." if self.place.vpp > 1 else ""
                self.layer(f"layers.{layer}.", f"{chunk_name}decoder.layers.{i}.", layer)
        if stage == self.place.pp - 1:
            self.out["decoder.final_layernorm.weight"] = model["norm.weight"]
            if not model.tied or self.place.pp > 1:
                self.out["output_layer.weight"] = self.vocab("lm_head.weight")
        return self.out

    def vocab(self, name):
        return cut(padded(self.model[name], self.place.vocab_divisible * self.tp), self.tp, self.r)

    def put(self, name, make):
        """A weight, and its scales by the same cut: make(suffix) takes names with it."""
        self.out[name] = make("")
        if self.model.fp8:
            self.out[name + SCALE] = make(SCALE)

    def columns_of(self, name, n, r):
        """Row parallel: the input dim is cut."""
        if self.place.row_parallel_by_rows:
            return cut(self.model[name], n, r)
        return columns(self.model[name], cut, n, r)

    def layer(self, p, to, layer):
        model, attn, own = self.model, p + "self_attn.", to + "self_attention."
        norm = "linear_qkv.layer_norm_weight" if not model.mla else None
        norm_name = own + norm if norm and self.place.te else to + "input_layernorm.weight"
        self.out[norm_name] = model[p + "input_layernorm.weight"]
        if model.mla:
            self.mla(attn, own)
        else:
            self.attention(attn, own)
        moe = model.is_moe(layer)
        fused = self.place.te and not moe
        name = "mlp.linear_fc1.layer_norm_weight" if fused else "pre_mlp_layernorm.weight"
        self.out[to + name] = model[p + "post_attention_layernorm.weight"]
        if not moe:
            self.mlp(p + "mlp.", to + "mlp.")
            return
        self.out[to + "mlp.router.weight"] = model[p + "mlp.gate.weight"]
        bias = model[p + "mlp.gate.e_score_correction_bias"]
        self.out[to + "mlp.router.expert_bias"] = bias
        if model.shared:
            self.mlp(p + "mlp.shared_experts.", to + "mlp.shared_experts.")
        self.experts(p, to + "mlp.experts.")

    def attention(self, attn, own):
        model = self.model
        self.put(own + "linear_qkv.weight", lambda s: self.qkv(attn, ".weight" + s))
        self.put(own + "linear_proj.weight",
                 lambda s: self.columns_of(attn + "o_proj.weight" + s, self.tp, self.r))
        if model.biases:
            self.out[own + "linear_qkv.bias"] = self.qkv(attn, ".bias")
            self.out[own + "linear_proj.bias"] = model[attn + "o_proj.bias"]
        if model.qk_norm:
            self.out[own + "q_layernorm.weight"] = model[attn + "q_norm.weight"]
            self.out[own + "k_layernorm.weight"] = model[attn + "k_norm.weight"]

    def qkv(self, attn, suffix):
        """Per KV head its q heads, k, v; then cut by raw rows."""
        q, k, v = (self.model[attn + name + "_proj" + suffix] for name in "qkv")
        groups = self.model.kv_heads
        grouped = []
        for g in range(groups):
            grouped += cut(q, groups, g) + cut(k, groups, g) + cut(v, groups, g)
        own = cut(grouped, self.tp, self.r)
        if self.place.qkv_as_blocks:
            order = {id(row): i for i, row in enumerate(q + k + v)} if suffix != ".bias" else None
            own = sorted(own, key=lambda row: order[id(row)] if order else row)
        return own

    def mla(self, attn, own):
        model, n, r = self.model, self.tp, self.r
        by_rows = lambda name: lambda s: cut(model[attn + name + s], n, r)
        whole = lambda name: lambda s: model[attn + name + s]
        down = whole if self.place.te else by_rows
        if model.q_rank:
            self.put(own + "linear_q_down_proj.weight", down("q_a_proj.weight"))
            name = "linear_q_up_proj.layer_norm_weight" if self.place.te else "q_layernorm.weight"
            self.out[own + name] = model[attn + "q_a_layernorm.weight"]
            self.put(own + "linear_q_up_proj.weight", by_rows("q_b_proj.weight"))
        else:
            self.put(own + "linear_q_proj.weight", by_rows("q_proj.weight"))
        self.put(own + "linear_kv_down_proj.weight", down("kv_a_proj_with_mqa.weight"))
        name = "linear_kv_up_proj.layer_norm_weight" if self.place.te else "kv_layernorm.weight"
        self.out[own + name] = model[attn + "kv_a_layernorm.weight"]
        self.put(own + "linear_kv_up_proj.weight", by_rows("kv_b_proj.weight"))
        self.put(own + "linear_proj.weight",
                 lambda s: self.columns_of(attn + "o_proj.weight" + s, n, r))

    def joined(self, gate, up):
        if self.place.gate_up == "swapped":
            return up + gate
        return interleaved(gate, up) if self.place.gate_up == "interleaved" else gate + up

    def mlp(self, p, to):
        model, n, r = self.model, self.tp, self.r
        part = lambda name: cut(model[p + name], n, r)
        self.put(to + "linear_fc1.weight",
                 lambda s: self.joined(part("gate_proj.weight" + s), part("up_proj.weight" + s)))
        self.put(to + "linear_fc2.weight",
                 lambda s: self.columns_of(p + "down_proj.weight" + s, n, r))

    def experts(self, p, to):
        model, n, r = self.model, self.place.etp, self.etp
        local = model.experts // self.place.ep
        number = lambda i: i * self.place.ep + self.ep if self.place.round_robin else (
            self.ep * local + i)
        part = lambda i, name: cut(model.expert(p, number(i), name), n, r)
        fc1 = lambda i, s: self.joined(part(i, "gate_proj.weight!" + s),
                                       part(i, "up_proj.weight!" + s))
        fc2 = lambda i, s: columns(model.expert(p, number(i), "down_proj.weight!" + s), cut, n, r)
        if self.place.grouped:  # expert-major, each [in, out]
            way = (lambda x: x) if self.place.not_transposed else transposed
            self.put(to + "weight1", lambda s: [way(fc1(i, s)) for i in range(local)])
            self.put(to + "weight2", lambda s: [way(fc2(i, s)) for i in range(local)])
            return
        for i in range(local):
            self.put(expert_name(self.place, to, "linear_fc1", i), lambda s: fc1(i, s))
            self.put(expert_name(self.place, to, "linear_fc2", i), lambda s: fc2(i, s))


def expert_name(place, to, name, i):
    """One module for all experts of a rank with Transformer Engine, else one for each."""
    return f"{to}{name}.weight{i}" if place.te else f"{to}local_experts.{i}.{name}.weight"


COLWISE = ("q_proj", "k_proj", "v_proj", "q_b_proj", "kv_b_proj", "gate_proj", "up_proj",
           "embed_tokens", "lm_head")  # fmt: skip
ROWWISE = ("o_proj.weight", "down_proj.weight")


def of_fsdp(model, place, rank):
    """Each parameter: tp's part, and of that a chunk of dim 0."""
    shard, r = place.coordinates(rank)
    out = {}
    for name, (how, whole) in parameters_of(model, place).items():
        if how == "packed":  # tp cuts each, FSDP2 what then lies together
            whole = [row for part in whole for row in cut(part, place.tp, r)]
        if how == "rows" and place.mesh_order:  # as somebody may believe
            out[name] = chunk(chunk(whole, place.shard, shard), place.tp, r)
            continue
        if how == "rows":
            whole = chunk(whole, place.tp, r)
        elif how == "columns":
            whole = columns(whole, chunk, place.tp, r)
        out[name] = whole if how == "whole" else chunk(whole, place.shard, shard)
    return out


def parameters_of(model, place):
    """Name -> (what tp does to it, all of it)."""
    out, done = {}, set()
    for name in model.tensors:
        layer, _, leaf = name.rpartition("self_attn.")
        if place.fused and leaf.startswith(("q_proj", "k_proj", "v_proj")) and not model.mla:
            suffix = leaf[len("q_proj"):]
            names = [f"{layer}self_attn.{x}_proj{suffix}" for x in "qkv"]
            fused, how = f"{layer}self_attn.qkv_proj{suffix}", "packed"
            joined = [model[each] for each in names]
        elif ".experts." in name and place.experts_fused:
            p = name[: name.index("mlp.experts.")]
            leaf = name.rpartition("_proj.weight")[2]
            fused, joined = experts_of(model, place, p, name, leaf)
            how = "rows" if place.tp_is_ep else "not"
        elif place.fused and name.endswith(("gate_proj.weight", "up_proj.weight")) and (
                ".experts." not in name):
            fused = name.replace("gate_proj", "gate_up_proj").replace("up_up_", "up_")
            fused = fused if "gate_up" in fused else fused.replace("up_proj", "gate_up_proj")
            pair = [fused.replace("gate_up_proj", half) for half in ("gate_proj", "up_proj")]
            joined, how = [model[each] for each in pair], "packed"
        else:
            if model.tied and name == "lm_head.weight":
                continue
            fused, joined, how = name, model[name], how_of(name)
        if fused not in done:
            done.add(fused)
            out[fused] = (how, joined)
    return out


def how_of(name):
    if name.endswith(SCALE):
        return "whole"
    if ".experts." in name:
        return "not"
    if name.rsplit(".", 2)[-2] in COLWISE:
        return "rows"
    return "columns" if name.endswith(ROWWISE) else "not"


def experts_of(model, place, p, name, leaf):
    """gate_up_proj [E, 2M, H] and down_proj [E, H, M], or, as gpt_oss has them, [E, H, 2M] with
    gate and up in turns, and [E, M, H]."""
    part = lambda e, x: model.expert(p, e, f"{x}_proj.weight!{leaf}")
    way = transposed if place.experts_fused == "gpt_oss" else lambda x: x
    if "down_proj" in name:
        return f"{p}mlp.experts.down_proj{leaf}", [
            way(part(e, "down")) for e in range(model.experts)]
    join = interleaved if place.experts_fused == "gpt_oss" else lambda a, b: a + b
    return f"{p}mlp.experts.gate_up_proj{leaf}", [
        way(join(part(e, "gate"), part(e, "up"))) for e in range(model.experts)]


def of_flat(model, place, rank):
    """FSDP1: a layer's parameters one behind the other; ZeRO-3: each by itself; buckets of
    Megatron's distributed optimizer: in reverse order, aligned and padded."""
    n, r = place.shard, rank - place.first_rank
    out = {}
    for name, tensors in flat_groups(model, place).items():
        whole = []
        for each in tensors:
            whole += [-1] * (-len(whole) % place.align) + flat(model[each])
        whole += [-1] * (-len(whole) % place.flat_pad)
        whole += [-1] * (-len(whole) % n)
        out[name] = cut(whole, n, r)
    return out


def flat_groups(model, place):
    names = [name for name, of in model.tensors.items()
             if "alias_of" not in of and of["dtype"] == "bf16"]
    out = {}
    for name in reversed(names) if place.reverse else sorted(names, key=registered_at):
        group = ".".join(name.split(".")[:2]) if name.startswith("layers.") else "root"
        out.setdefault(name if place.each else f"{group}.flat", []).append(name)
    for name, of in model.tensors.items():
        if of["dtype"] != "bf16":
            out[name] = [name]
    return out


def registered_at(name):
    """Where Hugging Face's modules have a parameter: the layers of a model in turn; in each its
    attention, its MLP (experts before their gate), its norms."""
    parts = name.split(".")
    if parts[0] != "layers":
        return (("embed_tokens", "norm", "lm_head").index(parts[0]) - 1) * 10**6, 0, 0
    modules = ("self_attn", "mlp", "input_layernorm", "post_attention_layernorm")
    blocks = ("experts", "gate", "shared_experts")
    return (int(parts[1]), modules.index(parts[2]),
            blocks.index(parts[3]) if parts[3] in blocks else 0)
