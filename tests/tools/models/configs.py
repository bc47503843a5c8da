# SPDX-License-Identifier: BSD-3-Clause
"""Drawn jobs that a config.json and two parallelisms say in full."""

from models.draw import TRIES, Job


class ConfiguredJob(Job):
    """As Job, but of what families have and `reshard model` has words for."""

    def __init__(self, seed):
        for more in range(TRIES):
            super().__init__(f"{seed}/{more}")
            if self.is_said():
                return
        raise AssertionError(f"seed {seed}: nothing can be said")

    def sizes(self, moe, mla):
        out = super().sizes(moe, mla)
        out.update(stacked=True, fp8=0)
        if mla or moe:
            out["biases"] = False
        if not moe:
            out["experts"] = out["shared"] = 0
        if out["shared"]:  # as of so many experts
            out["shared"] = out["expert_ffn"] * max(1, out["shared"] // out["expert_ffn"])
        return out

    def is_said(self):
        train, serve, model = self.training, self.serving, self.model
        self.converted = None
        if serve.kind == "sglang" and serve.pp > 1 and model.tied and not (
                model.mla or model.experts or model.qk_norm):  # llama, which SGLang refuses
            return False
        if train.kind == "megatron":
            n = train.tp
            if model.shared % n or model.shared % serve.tp:
                return False
            if train.split and train.vpp > 1 and len(set(train.split)) > 1:
                return False
        elif model.shared % serve.tp:
            return False
        if train.kind == "fsdp":
            if train.fused or train.pad_alike:
                return False
            train.experts_fused = "hf" if model.experts else ""
        if train.kind == "flat":
            if model.experts:  # of one parameter for all experts
                return False
            train.reverse, train.align, train.flat_pad = False, 1, 1
        if serve.gate_up != "halves" or serve.transposed or serve.expert_pad != 1:
            return False
        if serve.expert_rule == "eplb" and model.experts:
            slots, experts = serve.slots, model.experts
            if len(slots) == experts or slots != [p % experts for p in range(len(slots))]:
                return False
        return True

    def buffers(self, which, place=None):
        out = super().buffers(which, place)
        if which == "training" and self.training.kind != "megatron":
            for name in self.model.tensors:  # no parameter at Hugging Face
                if name.endswith("e_score_correction_bias"):
                    for rank in range(self.training.ranks):
                        out[self.training.first_rank + rank, name] = self.model[name]
        return out

    # ---- the config ----
    def config(self):
        of = self.model
        out = dict(num_hidden_layers=of.layers, hidden_size=of.hidden, vocab_size=of.vocab,
                   num_attention_heads=of.heads, intermediate_size=of.ffn,
                   tie_word_embeddings=of.tied, torch_dtype="bfloat16")
        if of.mla:
            out.update(model_type="deepseek_v3", q_lora_rank=of.q_rank or None,
                       kv_lora_rank=of.kv_rank, qk_nope_head_dim=of.nope,
                       qk_rope_head_dim=of.rope, v_head_dim=of.value)
        else:
            out.update(num_key_value_heads=of.kv_heads, head_dim=of.head,
                       attention_bias=of.biases)
            family = "glm4_moe" if of.experts else "qwen3" if of.qk_norm else "llama"
            out.update(model_type=family, use_qk_norm=of.qk_norm)
        if of.mla or of.experts:
            out.update(n_routed_experts=of.experts or 4, n_group=2,
                       moe_intermediate_size=of.expert_ffn if of.experts else 1,
                       first_k_dense_replace=of.dense_layers if of.experts else of.layers,
                       n_shared_experts=of.shared // of.expert_ffn if of.experts else 0)
        return out

    # ---- the words ----
    def words(self):
        texts = {"training": self.training_words(), "serving": self.serving_words()}
        first, second = self.sides()
        out = []
        for which, option in ((first, "--from"), (second, "--to")):
            place = getattr(self, which)
            ranks = f"{place.first_rank}-{place.first_rank + place.ranks - 1}"
            out += [option, texts[which], "--ranks" if option == "--from" else "--to-ranks", ranks]
        return out

    def training_words(self):
        p, model = self.training, self.model
        if p.kind == "flat":
            return f"{'zero3' if p.each else 'fsdp1'} dp={p.shard}"
        if p.kind == "fsdp":
            experts = " experts=ep" if p.tp_is_ep else " experts=whole"
            return f"fsdp2 replicate={p.rep} dp={p.shard} tp={p.tp}{experts}"
        out = f"megatron tp={p.tp} cp={p.cp} dp={p.dp} pp={p.pp}"
        if model.experts:
            out += f" ep={p.ep} etp={p.etp}"
        if p.vpp > 1:
            out += f" vpp={p.vpp}"
        out += f" order=tp-cp-ep-{'pp-dp' if p.dp_outermost else 'dp-pp'}"
        out += "" if p.te else " spec=local"
        out += " experts=grouped" if p.grouped else ""
        out += f" vocab-divisible={p.vocab_divisible}"
        if p.vpp == 1 and p.split and len(set(p.split)) > 1:
            layout = "|".join("t" * count for count in p.split)
            out += f" layout=E{layout}L"
        return out

    def serving_words(self):
        p, model = self.serving, self.model
        out = f"{p.kind} tp={p.tp} pp={p.pp} dp={p.dp}"
        if model.experts:
            if p.kind == "vllm":
                out += " ep" if p.ep_on else ""
                if p.expert_rule == "round robin":
                    out += " experts=round-robin"
            else:
                out += f" ep={p.ep} moe-dp={p.moe_dp}"
            if p.expert_rule == "eplb":
                out += f" redundant={len(p.slots) - model.experts}"
        return out
