// SPDX-License-Identifier: BSD-3-Clause
// How Hugging Face's modules lie under its own tensor parallelism, FSDP2, FSDP1 and ZeRO-3.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>

#include "sim/models/transfer.h"
#include "tests/sim/models/small_models.h"

using namespace reshard;
using namespace reshard::sim;
using namespace reshard::test;

namespace {

ModelLayouts side_of(const std::string& family, const std::string& side,
                     const std::string& fields = "") {
  return layouts_of(transfer_text(small_model(family, fields), {{side}, {"whole"}}).lines);
}

// The buffers of which rank 0 has less than all elements, without their layers.
std::set<std::string> cut_in(const std::string& family) {
  ModelLayouts one = side_of(family, "hf"), two = side_of(family, "hf tp=2");
  std::map<std::string, std::int64_t> whole;
  for (const StoredBuffer& buffer : one.source->buffers())
    whole[std::string(buffer.name)] = element_count(buffer.shape);
  std::set<std::string> out;
  for (const StoredBuffer& buffer : two.source->buffers()) {
    if (to_int(buffer.rank) != 0 ||
        element_count(buffer.shape) == whole.at(std::string(buffer.name)))
      continue;
    CHECK(element_count(buffer.shape) * 2 == whole.at(std::string(buffer.name)));
    std::string name(buffer.name);
    if (std::size_t at = name.find("layers."); at != std::string::npos) name.erase(0, at + 9);
    out.insert(name.substr(0, name.rfind(".weight")));
  }
  return out;
}

using Names = std::set<std::string>;

Names with(Names names, const Names& more) {
  names.insert({"model.embed_tokens", "lm_head"});
  names.insert(more.begin(), more.end());
  return names;
}

}  // namespace

TEST_CASE("tp of Hugging Face cuts what base_model_tp_plan names, family by family") {
  const Names attention{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                        "self_attn.o_proj"},
      mlp{"mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"},
      experts{"mlp.experts.gate_up_proj", "mlp.experts.down_proj"},
      shared{"mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj",
             "mlp.shared_experts.down_proj"};
  for (const char* family : {"llama", "mistral", "qwen3"})
    CHECK(cut_in(family) == with(attention, mlp));
  CHECK(cut_in("qwen3_moe") == with(attention, experts));
  CHECK(cut_in("glm4_moe") == with(with(attention, mlp), with(experts, shared)));
  CHECK(cut_in("deepseek_v3") == with(mlp, with(experts, shared)));
  CHECK(cut_in("kimi_k2") == cut_in("deepseek_v3"));
  CHECK(cut_in("deepseek_v2") ==
        with(with({"self_attn.q_b_proj", "self_attn.kv_b_proj", "self_attn.o_proj"}, mlp),
             with(experts, shared)));
  CHECK(cut_in("gpt_oss") == with({}, {}));
  CHECK(cut_in("phi3") ==
        with({"self_attn.qkv_proj", "self_attn.o_proj"}, {"mlp.gate_up_proj", "mlp.down_proj"}));
  // Biases are cut with the rows that they are of.
  const Names biases{"self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias"};
  CHECK(cut_in("qwen2") == with(with(attention, mlp), biases));
  CHECK(cut_in("qwen2_moe") == with(with(attention, experts), biases));
}

TEST_CASE("What is one parameter is cut as one, wherever its parts meet") {
  const std::string qkv = "model.layers.0.self_attn.qkv_proj.weight",
                    gate_up = "model.layers.1.mlp.gate_up_proj.weight";
  // 8 + 4 + 4 rows by torch.chunk: 6, 6 and 4; 12 + 12 rows: 8 each.
  for (const char* side : {"fsdp2 dp=3", "hf tp=3", "hsdp dp=3"}) {
    ModelLayouts three = side_of("phi3", side);
    CHECK(rows_in(*three.source, 0, qkv) == "q_proj[0:6]");
    CHECK(rows_in(*three.source, 1, qkv) == "q_proj[6:8] k_proj[0:4]");
    CHECK(rows_in(*three.source, 2, qkv) == "v_proj[0:4]");
    CHECK(rows_in(*three.source, 1, gate_up) == "gate_proj[8:12] up_proj[0:4]");
  }
  // Cut by tp first, each rank's part by dp then.
  ModelLayouts four = side_of("phi3", "fsdp2 dp=2 tp=2");
  CHECK(rows_in(*four.source, 0, qkv) == "q_proj[0:4]");
  CHECK(rows_in(*four.source, 1, qkv) == "k_proj[0:4]");
  CHECK(rows_in(*four.source, 2, qkv) == "q_proj[4:8]");
  CHECK(rows_in(*four.source, 3, qkv) == "v_proj[0:4]");
  // Experts' gate and up are packed: each is cut by itself.
  ModelLayouts packed = side_of("qwen3_moe", "hf tp=2");
  const StoredBufferId id =
      *packed.source->find(Rank{1}, "model.layers.0.mlp.experts.gate_up_proj");
  for (const StoredPart& part : packed.source->buffers()[id].parts) CHECK(part.box.lo[1] == 2);
  ModelLayouts flat = side_of("phi3", "zero3 dp=2");
  CHECK(rows_in(*flat.source, 0, qkv) == "q_proj[0:8]");
  CHECK(rows_in(*flat.source, 1, qkv) == "k_proj[0:4] v_proj[0:4]");
}

TEST_CASE("FSDP1 flattens a layer in the order in which its modules are registered") {
  auto flat = [](const std::string& family, const std::string& layer) {
    ModelLayouts layouts = side_of(family, "fsdp1");
    std::string out;
    const StoredBufferId id = *layouts.source->find(Rank{0}, layer + "_flat_param");
    std::map<std::int64_t, std::string> found;
    for (const StoredPart& part : layouts.source->buffers()[id].parts) {
      std::string name((*layouts.tensors)[part.tensor].name.substr(layer.size()));
      found[part.offset] += name.substr(0, name.rfind(".weight")) + " ";
    }
    for (const auto& [offset, names] : found) out += names;
    return out;
  };
  const std::string attention =
      "self_attn.q_proj self_attn.k_proj self_attn.v_proj self_attn.o_proj ";
  CHECK(flat("llama", "model.layers.0.") ==
        attention +
            "mlp.gate_proj mlp.up_proj mlp.down_proj input_layernorm post_attention_layernorm ");
  CHECK(flat("llama", "") == "model.embed_tokens model.norm lm_head ");
  CHECK(flat("gemma2", "model.layers.0.")
            .ends_with("mlp.down_proj input_layernorm post_attention_layernorm "
                       "pre_feedforward_layernorm post_feedforward_layernorm "));
  CHECK(flat("qwen3_moe", "model.layers.1.")
            .starts_with(attention + "self_attn.q_norm self_attn.k_norm mlp.experts."));
  CHECK(flat("qwen3_moe", "model.layers.1.")
            .ends_with("mlp.gate input_layernorm post_attention_layernorm "));
  CHECK(flat("mixtral", "model.layers.1.")
            .starts_with(attention + "block_sparse_moe.gate block_sparse_moe.experts."));
  CHECK(flat("qwen2_moe", "model.layers.1.")
            .ends_with("mlp.shared_expert.gate_proj mlp.shared_expert.up_proj "
                       "mlp.shared_expert.down_proj mlp.shared_expert_gate input_layernorm "
                       "post_attention_layernorm "));
  CHECK(flat("deepseek_v3", "model.layers.1.")
            .ends_with("mlp.gate mlp.shared_experts.gate_proj mlp.shared_experts.up_proj "
                       "mlp.shared_experts.down_proj input_layernorm post_attention_layernorm "));
  CHECK(flat("deepseek_v3", "model.layers.1.")
            .starts_with("self_attn.q_a_proj self_attn.q_a_layernorm self_attn.q_b_proj "
                         "self_attn.kv_a_proj_with_mqa self_attn.kv_a_layernorm "
                         "self_attn.kv_b_proj self_attn.o_proj mlp.experts."));
  CHECK(flat("gpt_oss", "model.layers.1.")
            .starts_with("self_attn.sinks self_attn.q_proj self_attn.q_proj.bias "));
  CHECK(flat("phi3", "model.layers.1.")
            .starts_with("self_attn.o_proj self_attn.q_proj self_attn.k_proj self_attn.v_proj "
                         "mlp.gate_proj mlp.up_proj mlp.down_proj "));
}

TEST_CASE("With use_orig_params FSDP1 begins each parameter at a multiple of 16 bytes") {
  auto at = [](const std::string& side, const std::string& name) {
    ModelLayouts layouts = side_of("qwen3", side);
    const StoredBufferId id = *layouts.source->find(Rank{0}, "model.layers.0._flat_param");
    for (const StoredPart& part : layouts.source->buffers()[id].parts)
      if ((*layouts.tensors)[part.tensor].name == "model.layers.0." + name) return part.offset;
    return std::int64_t{-1};
  };
  // After q, k, v and o (64 + 32 + 32 + 64 elements), norms of 2 elements.
  CHECK(at("fsdp1", "self_attn.k_norm.weight") == 194);
  CHECK(at("fsdp1 orig-params", "self_attn.k_norm.weight") == 200);
  CHECK(at("fsdp1 orig-params", "mlp.gate_proj.weight") == 208);
}
