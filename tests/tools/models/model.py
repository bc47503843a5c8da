# SPDX-License-Identifier: BSD-3-Clause
"""The logical tensors of a model: their names, shapes and element numbers."""

import math

from models import numbers

SCALE = "_scale_inv"


class Model:
    """Sizes by name (`layers`, `hidden`, `heads`, ...), and `tensors` in order."""

    def __init__(self, sizes):
        self.__dict__.update(sizes)
        self.tensors, self.elements = {}, 0
        self.add("embed_tokens.weight", self.vocab, self.hidden)
        for layer in range(self.layers):
            self.add_layer(f"layers.{layer}.", self.is_moe(layer))
        self.add("norm.weight", self.hidden)
        if self.tied:
            tied = self.tensors["embed_tokens.weight"]
            self.tensors["lm_head.weight"] = {**tied, "alias_of": "embed_tokens.weight"}
        else:
            self.add("lm_head.weight", self.vocab, self.hidden)

    def is_moe(self, layer):
        return self.experts > 0 and layer >= self.dense_layers

    def add(self, name, *shape, dtype="bf16", block=None):
        self.tensors[name] = {"shape": list(shape), "dtype": dtype, "first": self.elements}
        self.elements += math.prod(shape)
        if block is None or not self.fp8:
            return
        # One scale for each block of the checkpoint's tensor.
        block = [1] * (len(shape) - 2) + block
        scales = [-(-extent // b) for extent, b in zip(shape, block)]
        self.add(name + SCALE, *scales, dtype="f32")
        self.tensors[name + SCALE].update(scales=name, block=block)

    def linear(self, name, rows, columns, *outer, bias=False):
        self.add(name + ".weight", *outer, rows, columns, block=[self.fp8 or 1] * 2)
        if bias:
            self.add(name + ".bias", rows)

    def add_layer(self, p, moe):
        hidden, heads = self.hidden, self.heads
        attn = p + "self_attn."
        self.add(p + "input_layernorm.weight", hidden)
        if self.mla:
            nope, rope, value = self.nope, self.rope, self.value
            if self.q_rank:
                self.linear(attn + "q_a_proj", self.q_rank, hidden)
                self.add(attn + "q_a_layernorm.weight", self.q_rank)
                self.linear(attn + "q_b_proj", heads * (nope + rope), self.q_rank)
            else:
                self.linear(attn + "q_proj", heads * (nope + rope), hidden)
            self.linear(attn + "kv_a_proj_with_mqa", self.kv_rank + rope, hidden)
            self.add(attn + "kv_a_layernorm.weight", self.kv_rank)
            self.linear(attn + "kv_b_proj", heads * (nope + value), self.kv_rank)
            self.linear(attn + "o_proj", hidden, heads * value)
        else:
            for name, count in (("q", heads), ("k", self.kv_heads), ("v", self.kv_heads)):
                self.linear(attn + name + "_proj", count * self.head, hidden, bias=self.biases)
            self.linear(attn + "o_proj", hidden, heads * self.head, bias=self.biases)
            if self.qk_norm:
                self.add(attn + "q_norm.weight", self.head)
                self.add(attn + "k_norm.weight", self.head)
        self.add(p + "post_attention_layernorm.weight", hidden)
        if not moe:
            self.add_mlp(p + "mlp.", self.ffn)
            return
        self.add(p + "mlp.gate.weight", self.experts, hidden)
        self.add(p + "mlp.gate.e_score_correction_bias", self.experts, dtype="f32")
        if self.shared:
            self.add_mlp(p + "mlp.shared_experts.", self.shared)
        if self.stacked:
            self.add_mlp(p + "mlp.experts.", self.expert_ffn, self.experts)
        else:
            for expert in range(self.experts):
                self.add_mlp(f"{p}mlp.experts.{expert}.", self.expert_ffn)

    def add_mlp(self, p, ffn, *outer):
        self.linear(p + "gate_proj", ffn, self.hidden, *outer)
        self.linear(p + "up_proj", ffn, self.hidden, *outer)
        self.linear(p + "down_proj", self.hidden, ffn, *outer)

    def __getitem__(self, name):
        of = self.tensors[name]
        return numbers.tensor(of["first"], of["shape"])

    def expert(self, p, number, name):
        """A matrix of one expert of the layer with prefix p."""
        if self.stacked:
            name, _, scale = name.partition("!")
            return self[f"{p}mlp.experts.{name}{scale}"][number]
        return self[f"{p}mlp.experts.{number}.{name.replace('!', '')}"]

    def dtype_of(self, element):
        """Of the tensor with that number."""
        firsts = [(of["first"], of["dtype"]) for of in self.tensors.values()]
        return max(each for each in firsts if each[0] <= element)[1]

    def name_of(self, element):
        """(tensor, index), for what is printed."""
        for name, of in self.tensors.items():
            at = element - of["first"]
            if "alias_of" not in of and 0 <= at < math.prod(of["shape"]):
                index = []
                for extent in reversed(of["shape"]):
                    index.insert(0, at % extent)
                    at //= extent
                return f"{name}{index}"
        return "padding"

    def lines(self):
        """As the program's file names them."""
        for name, of in self.tensors.items():
            if "alias_of" in of:
                yield {"tensor": name, "alias_of": of["alias_of"]}
            elif "scales" in of:
                keys = ("scales", "block", "dtype")
                yield {"tensor": name, **{key: of[key] for key in keys}}
            else:
                yield {"tensor": name, "shape": of["shape"], "dtype": of["dtype"]}
