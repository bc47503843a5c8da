// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/weights/families.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "sim/models/weights/config.h"

namespace reshard::sim {
namespace {

enum class Yes : std::uint8_t { No, Always, Asked };  // Asked: if a field of the config is set
enum class Experts : std::uint8_t { None, Sparse, AfterDense, All };

// How a family differs from Llama.
struct Family {
  std::string_view name;
  bool is_mla = false;
  Yes query_bias = Yes::Asked;  // of q, k and v
  Yes out_bias = Yes::Asked;
  std::string_view bias_field = "attention_bias";
  bool has_biases = false;    // if that field is not there
  bool may_bias_mlp = false;  // as mlp_bias says
  Yes head_norms = Yes::No;   // q_norm and k_norm (use_qk_norm)
  bool has_four_norms = false;
  Experts experts = Experts::None;
  std::string_view expert_count = "";  // the config's field
  std::string_view expert_rows = "moe_intermediate_size";
  bool is_tied = false;       // unless the config states it
  std::int64_t head_dim = 0;  // unless the config states it; 0: hidden_size / heads
  bool needs_kv_heads = true;
};

constexpr auto kFamilies = std::to_array<Family>({
    {.name = "llama", .may_bias_mlp = true, .needs_kv_heads = false},
    {.name = "mistral", .query_bias = Yes::No, .out_bias = Yes::No},
    {.name = "qwen2", .query_bias = Yes::Always, .out_bias = Yes::No},
    {.name = "qwen2_moe",
     .out_bias = Yes::No,
     .bias_field = "qkv_bias",
     .has_biases = true,
     .experts = Experts::Sparse,
     .expert_count = "num_experts"},
    {.name = "qwen3", .head_norms = Yes::Always, .head_dim = 128},
    {.name = "qwen3_moe",
     .head_norms = Yes::Always,
     .experts = Experts::Sparse,
     .expert_count = "num_experts"},
    {.name = "mixtral",
     .query_bias = Yes::No,
     .out_bias = Yes::No,
     .experts = Experts::All,
     .expert_count = "num_local_experts",
     .expert_rows = "intermediate_size"},
    {.name = "deepseek_v2",
     .is_mla = true,
     .may_bias_mlp = true,
     .experts = Experts::AfterDense,
     .expert_count = "n_routed_experts"},
    {.name = "deepseek_v3",
     .is_mla = true,
     .experts = Experts::AfterDense,
     .expert_count = "n_routed_experts"},
    {.name = "kimi_k2",
     .is_mla = true,
     .experts = Experts::AfterDense,
     .expert_count = "n_routed_experts"},
    {.name = "glm4_moe",
     .out_bias = Yes::No,
     .head_norms = Yes::Asked,
     .experts = Experts::AfterDense,
     .expert_count = "n_routed_experts"},
    {.name = "gpt_oss",
     .has_biases = true,
     .experts = Experts::All,
     .expert_count = "num_local_experts",
     .expert_rows = "intermediate_size",
     .head_dim = 64},
    {.name = "gemma", .is_tied = true, .head_dim = 256},
    {.name = "gemma2", .has_four_norms = true, .is_tied = true, .head_dim = 256},
    {.name = "gemma3_text",
     .head_norms = Yes::Always,
     .has_four_norms = true,
     .is_tied = true,
     .head_dim = 256},
    {.name = "phi3", .query_bias = Yes::No, .out_bias = Yes::No, .needs_kv_heads = false},
});

const Family& family_of(const ConfigFields& config, const Model& model) {
  for (const Family& family : kFamilies)
    if (family.name == model.family) return family;
  config.fail("model_type", fmt::format("{}", fmt::join(model_families(), ", ")));
}

class ModelWeights {
 public:
  ModelWeights(const ConfigFields& config, Model& model)
      : config_(config), model_(model), family_(family_of(config, model)) {}

  void add() {
    read_sizes();
    group_ = &model_.embedding;
    put("model.embed_tokens.weight", Role::Embedding, {config_.size("vocab_size"), hidden_});
    std::int64_t layers = config_.size("num_hidden_layers");
    if (layers > kMostLayers) config_.fail("num_hidden_layers", "at most 4096 layers");
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      model_.layers.push_back({fmt::format("model.layers.{}.", layer), {}});
      group_ = &model_.layers.back();
      add_layer(layer);
    }
    group_ = &model_.head;
    put("model.norm.weight", Role::FinalNorm, {hidden_});
    put("lm_head.weight", Role::Head, {config_.size("vocab_size"), hidden_});
    if (std::int64_t more = config_.size_or("num_nextn_predict_layers", 0); more > 0) {
      model_.more_layers = more;
      model_.notes.push_back(fmt::format("without the {} layer{} for multi-token prediction", more,
                                         more == 1 ? "" : "s"));
    }
  }

 private:
  static constexpr std::int64_t kMostLayers = 4096, kMostRows = std::int64_t{1} << 36;

  void read_sizes() {
    const std::optional<DType> dtype = config_.dtype();
    if (!dtype) model_.notes.push_back("bf16, as the config states no dtype");
    dtype_ = dtype.value_or(DType::BF16);
    check_biases();
    hidden_ = config_.size("hidden_size");
    model_.heads = config_.size("num_attention_heads");
    model_.is_tied = config_.flag("tie_word_embeddings", family_.is_tied);
    if (family_.experts != Experts::None) model_.experts = config_.size(family_.expert_count);
    model_.expert_groups = config_.size_or("n_group", 0);
    model_.has_paired_gate = family_.name == "gpt_oss";
    model_.has_fused_files = family_.name == "phi3";
    if (family_.is_mla) return;
    model_.kv_heads = family_.needs_kv_heads ? config_.size("num_key_value_heads")
                                             : config_.size_or("num_key_value_heads", model_.heads);
    if (model_.kv_heads < 1 || model_.heads % model_.kv_heads != 0)
      config_.fail("num_key_value_heads",
                   fmt::format("a number that divides {} attention heads", model_.heads));
    model_.head_dim = config_.size_or("head_dim", family_.head_dim);
    if (model_.head_dim == 0) {
      if (hidden_ % model_.heads != 0)
        config_.fail("head_dim", "a number, as the heads do not divide hidden_size");
      model_.head_dim = hidden_ / model_.heads;
    }
    model_.value_dim = model_.head_dim;
  }

  // Fields that the family does not have may say what it does, and nothing else.
  void check_biases() const {
    const bool has_own = family_.query_bias == Yes::Asked && !family_.is_mla,
               has_biases = !family_.is_mla && asked(family_.query_bias);
    for (const char* key : {"attention_bias", "qkv_bias"})
      if ((!has_own || key != family_.bias_field) && config_.flag(key, has_biases) != has_biases)
        config_.fail(key, family_.is_mla
                              ? "false with MLA"
                              : fmt::format("{}, as {} has {}biases of q, k and v", has_biases,
                                            family_.name, has_biases ? "" : "no "));
    if (!family_.may_bias_mlp && config_.flag("mlp_bias", false))
      config_.fail("mlp_bias", fmt::format("false, as {} has no such biases", family_.name));
  }

  bool asked(Yes yes) const {
    return yes == Yes::Always ||
           (yes == Yes::Asked && config_.flag(family_.bias_field, family_.has_biases));
  }

  void put(std::string name, Role role, Shape shape, std::optional<DType> dtype = {}) {
    for (std::int64_t extent : shape)
      if (extent > kMostRows)
        throw InputError(fmt::format("{}: expected weights of at most {} rows, found {}[{}]",
                                     model_.file, kMostRows, name, text(shape)));
    group_->weights.push_back({std::move(name), role, shape, dtype.value_or(dtype_)});
  }
  // Adds a weight, and perhaps its bias, to the layer.
  void linear(std::string_view name, Role role, Shape shape, bool bias = false) {
    put(fmt::format("{}{}.weight", group_->prefix, name), role, shape);
    // The rows are the last dim but one. A bias of experts keeps the dim of experts.
    Shape rows;
    for (int d = 0; d + 1 < shape.size(); ++d) rows.push_back(shape[d]);
    if (bias) put(fmt::format("{}{}.bias", group_->prefix, name), role, rows);
  }
  void norm(std::string_view name, Role role, std::int64_t length) {
    put(fmt::format("{}{}.weight", group_->prefix, name), role, {length});
  }

  void add_layer(std::int64_t layer) {
    norm("input_layernorm", Role::InputNorm, hidden_);
    if (family_.is_mla)
      add_mla();
    else
      add_attention();
    if (family_.has_four_norms) {
      norm("post_attention_layernorm", Role::PostAttentionNorm, hidden_);
      norm("pre_feedforward_layernorm", Role::MlpNorm, hidden_);
    } else {
      norm("post_attention_layernorm", Role::MlpNorm, hidden_);
    }
    if (has_experts(layer))
      add_experts();
    else
      add_mlp("mlp", Role::Gate, config_.size("intermediate_size"));
    if (family_.has_four_norms) norm("post_feedforward_layernorm", Role::PostMlpNorm, hidden_);
  }

  void add_attention() {
    const std::int64_t d = model_.head_dim, rows = model_.heads * d, kv_rows = model_.kv_heads * d;
    const bool bias = asked(family_.query_bias), out_bias = asked(family_.out_bias);
    linear("self_attn.q_proj", Role::Query, {rows, hidden_}, bias);
    linear("self_attn.k_proj", Role::Key, {kv_rows, hidden_}, bias);
    linear("self_attn.v_proj", Role::Value, {kv_rows, hidden_}, bias);
    linear("self_attn.o_proj", Role::AttentionOut, {hidden_, rows}, out_bias);
    if (family_.head_norms == Yes::Always ||
        (family_.head_norms == Yes::Asked && config_.flag("use_qk_norm", false))) {
      norm("self_attn.q_norm", Role::QueryNorm, d);
      norm("self_attn.k_norm", Role::KeyNorm, d);
    }
    if (family_.name == "gpt_oss")
      put(group_->prefix + "self_attn.sinks", Role::Sinks, {model_.heads});
  }

  void add_mla() {
    const std::int64_t nope = config_.size("qk_nope_head_dim"),
                       rope = config_.size("qk_rope_head_dim"), value = config_.size("v_head_dim"),
                       kv_rank = config_.size("kv_lora_rank"),
                       q_rank = config_.stated("q_lora_rank"), heads = model_.heads;
    if (q_rank == 0) {
      linear("self_attn.q_proj", Role::Query, {heads * (nope + rope), hidden_});
    } else {
      linear("self_attn.q_a_proj", Role::QueryLatent, {q_rank, hidden_});
      norm("self_attn.q_a_layernorm", Role::QueryLatentNorm, q_rank);
      linear("self_attn.q_b_proj", Role::QueryUp, {heads * (nope + rope), q_rank});
    }
    linear("self_attn.kv_a_proj_with_mqa", Role::KeyValueLatent, {kv_rank + rope, hidden_});
    norm("self_attn.kv_a_layernorm", Role::KeyValueLatentNorm, kv_rank);
    linear("self_attn.kv_b_proj", Role::KeyValueUp, {heads * (nope + value), kv_rank});
    linear("self_attn.o_proj", Role::AttentionOut, {hidden_, heads * value});
  }

  bool has_experts(std::int64_t layer) const {
    switch (family_.experts) {
      case Experts::None:
        return false;
      case Experts::All:
        return true;
      case Experts::Sparse: {
        std::vector<std::int64_t> dense = config_.numbers("mlp_only_layers");
        std::int64_t step = config_.size_or("decoder_sparse_step", 1);
        if (step == 0) config_.fail("decoder_sparse_step", "a number from 1");
        return (layer + 1) % step == 0 &&
               std::find(dense.begin(), dense.end(), layer) == dense.end();
      }
      case Experts::AfterDense: {
        std::int64_t step = config_.size_or("moe_layer_freq", 1);
        if (step == 0) config_.fail("moe_layer_freq", "a number from 1");
        return layer >= config_.stated("first_k_dense_replace") && layer % step == 0;
      }
    }
    return false;
  }

  // `gate` is the role of the gate; the roles of up and down follow it in Role.
  void add_mlp(std::string_view prefix, Role gate, std::int64_t rows) {
    const bool bias = family_.may_bias_mlp && config_.flag("mlp_bias", false);
    auto role = [&](int i) { return static_cast<Role>(static_cast<int>(gate) + i); };
    linear(fmt::format("{}.gate_proj", prefix), role(0), {rows, hidden_}, bias);
    linear(fmt::format("{}.up_proj", prefix), role(1), {rows, hidden_}, bias);
    linear(fmt::format("{}.down_proj", prefix), role(2), {hidden_, rows}, bias);
  }

  void add_experts() {
    const bool is_mixtral = family_.name == "mixtral", is_gpt_oss = family_.name == "gpt_oss";
    const std::int64_t count = model_.experts, rows = config_.size(family_.expert_rows);
    const std::string_view at = is_mixtral ? "block_sparse_moe" : "mlp";
    linear(fmt::format("{}.{}", at, is_gpt_oss ? "router" : "gate"), Role::Router, {count, hidden_},
           is_gpt_oss);
    if (family_.name == "glm4_moe" || config_.word("topk_method", default_topk()) == "noaux_tc")
      put(group_->prefix + "mlp.gate.e_score_correction_bias", Role::RouterBias, {count},
          DType::F32);
    const std::array<std::string_view, 3> names =
        is_mixtral ? std::array<std::string_view, 3>{"w1", "w3", "w2"}
                   : std::array<std::string_view, 3>{"gate_proj", "up_proj", "down_proj"};
    auto expert = [&](std::size_t i, Role role, Shape shape) {
      linear(fmt::format("{}.experts.{}", at, names[i]), role, shape, is_gpt_oss);
    };
    expert(0, Role::ExpertGate, {count, rows, hidden_});
    expert(1, Role::ExpertUp, {count, rows, hidden_});
    expert(2, Role::ExpertDown, {count, hidden_, rows});
    add_shared(rows);
  }

  std::string_view default_topk() const {
    return family_.name == "deepseek_v3" || family_.name == "kimi_k2" ? "noaux_tc" : "";
  }

  void add_shared(std::int64_t rows) {
    if (family_.name == "qwen2_moe") {
      add_mlp("mlp.shared_expert", Role::SharedGate,
              config_.size("shared_expert_intermediate_size"));
      linear("mlp.shared_expert_gate", Role::SharedSwitch, {1, hidden_});
    } else if (family_.experts == Experts::AfterDense) {
      if (std::int64_t shared = config_.stated("n_shared_experts"); shared > 0)
        add_mlp("mlp.shared_experts", Role::SharedGate, shared * rows);
    }
  }

  const ConfigFields& config_;
  Model& model_;
  const Family& family_;
  WeightGroup* group_ = nullptr;
  std::int64_t hidden_ = 0;
  DType dtype_ = DType::BF16;
};

}  // namespace

std::vector<std::string_view> model_families() {
  std::vector<std::string_view> out;
  for (const Family& family : kFamilies) out.push_back(family.name);
  return out;
}

void add_weights(const ConfigFields& config, Model& model) { ModelWeights(config, model).add(); }

}  // namespace reshard::sim
