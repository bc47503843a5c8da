// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/kv/kv_model.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "sim/inputs/json_reader.h"
#include "sim/models/weights/config_fields.h"

namespace reshard::sim {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMostLayers = 4096, kMostExtent = std::int64_t{1} << 20;

// Fields which, unless they are off, mean that layers cache something else.
constexpr std::pair<const char*, const char*> kOtherCaches[] = {
    {"linear_attn_config", "linear attention, whose state is no cache of tokens"},
    {"linear_num_key_heads", "linear attention, whose state is no cache of tokens"},
    {"attn_type_list", "attention that differs by layer"},
    {"attn_layer_period", "layers without attention"},
    {"attn_layer_indices", "layers without attention"},
    {"hybrid_override_pattern", "layers without attention"},
    {"hybrid_layer_pattern", "attention that differs by layer"},
    {"layers_block_type", "layers without attention"},
    {"mamba_d_state", "state-space layers, whose state is no cache of tokens"},
    {"block_configs", "KV heads that differ by layer"},
    {"num_kv_shared_layers", "layers that share a cache"},
    {"use_cla", "layers that share a cache"},
    {"num_global_key_value_heads", "KV heads that differ by layer"},
    {"global_head_dim", "heads that differ by layer"},
    {"index_topk", "sparse attention, whose indexer has a cache of its own"},
    {"compress_ratios", "caches of compressed tokens"},
    {"is_encoder_decoder", "an encoder, whose output is cached, too"},
    {"cross_attention_layers", "layers that cache an encoder's output"},
};
// Other names for the number of KV heads, used if num_key_value_heads is missing.
constexpr const char* kOtherNamesOfHeads[] = {"multi_query", "num_kv_heads",
                                              "n_head_kv",   "multi_query_group_num",
                                              "attn_config", "num_query_groups"};

bool is_off(const Json& value) {
  return value.is_null() || value == false || value == 0 || value.empty();
}

class KvReader {
 public:
  KvReader(const ConfigFields& config, std::int64_t tokens) : config_(config), tokens_(tokens) {}

  KvModel read() {
    refuse_other_caches();
    KvModel out;
    if (const Json* type = config_.find("model_type"); type != nullptr && type->is_string())
      out.type = type->get<std::string>();
    out.layers = config_.size("num_hidden_layers", kMostLayers);
    std::int64_t heads = config_.size("num_attention_heads", kMostExtent);
    if (config_.find("kv_lora_rank") != nullptr)
      read_latent(out);
    else
      read_heads(heads, out);
    read_windows(out);
    out.dtype = dtype();
    note_more_layers(out);
    return out;
  }

 private:
  void refuse_other_caches() const {
    for (auto [key, what] : kOtherCaches) {
      const Json* value = config_.find(key);
      if (value == nullptr || is_off(*value)) continue;
      config_.fail(key, "a model that caches keys and values of all tokens in every layer", what);
    }
    if (auto interval = config_.integer("full_attention_interval", 0, kMostLayers);
        interval && *interval > 1)
      config_.fail("full_attention_interval", "full attention in every layer",
                   fmt::format("it in one of {}", *interval));
  }

  // A token has one vector for all heads: the latent, followed by the rotated channels.
  void read_latent(KvModel& out) const {
    out.key_dim =
        config_.size("kv_lora_rank", kMostExtent) + config_.size("qk_rope_head_dim", kMostExtent);
    out.assumed.push_back("a cache of latent vectors (MLA), as kv_lora_rank is given");
  }

  void read_heads(std::int64_t heads, KvModel& out) const {
    if (config_.find("qk_rope_head_dim") != nullptr)
      config_.fail("kv_lora_rank", "an integer next to qk_rope_head_dim", "no such field");
    auto kv_heads = config_.integer("num_key_value_heads", 1, kMostExtent);
    if (!kv_heads) {
      for (const char* key : kOtherNamesOfHeads)
        if (const Json* value = config_.find(key); value != nullptr && !is_off(*value))
          config_.fail(key, "num_key_value_heads, which says how many KV heads there are",
                       shown(*value) + " without it");
      out.assumed.push_back("a KV head for each head, as there is no num_key_value_heads");
    }
    out.heads = kv_heads.value_or(heads);
    if (heads % out.heads != 0)
      config_.fail("num_key_value_heads",
                   fmt::format("a divisor of num_attention_heads ({})", heads),
                   fmt::to_string(out.heads));
    auto dim = config_.integer("head_dim", 1, kMostExtent);
    if (!dim) {
      std::int64_t hidden = config_.size("hidden_size", kMostExtent);
      if (hidden % heads != 0)
        config_.fail("head_dim", "an integer, as num_attention_heads does not divide hidden_size",
                     "no such field");
      dim = hidden / heads;
    }
    out.key_dim = *dim;
    out.value_dim = config_.integer("v_head_dim", 1, kMostExtent).value_or(*dim);
  }

  // If there are fewer tokens than the window, all are kept, however an engine treats older ones.
  void read_windows(KvModel& out) const {
    bool sliding = false, chunked = false;
    if (const Json* types = config_.find("layer_types")) {
      read_layer_types(*types, out.layers, sliding, chunked);
    } else {
      const Json* used = config_.find("use_sliding_window");
      sliding = config_.integer("sliding_window", 0, INT64_MAX).value_or(0) > 0 &&
                (used == nullptr || *used != false);
      chunked = config_.integer("attention_chunk_size", 0, INT64_MAX).value_or(0) > 0;
    }
    if (sliding) check_window("sliding_window", out);
    if (chunked) check_window("attention_chunk_size", out);
    if (!sliding && !chunked)
      out.assumed.push_back("every layer caches all tokens, as no field says otherwise");
  }

  void read_layer_types(const Json& types, std::int64_t layers, bool& sliding,
                        bool& chunked) const {
    if (!types.is_array() || types.size() != static_cast<std::size_t>(layers))
      config_.fail("layer_types", fmt::format("a list of {}, one for each layer", layers),
                   shown(types));
    for (std::size_t layer = 0; layer < types.size(); ++layer) {
      const Json& type = types[layer];
      if (type == "sliding_attention")
        sliding = true;
      else if (type == "chunked_attention")
        chunked = true;
      else if (type != "full_attention" && type != "attention")
        config_.fail("layer_types", "\"full_attention\" for every layer",
                     fmt::format("{} for layer {}", shown(type), layer));
    }
  }

  void check_window(const char* key, KvModel& out) const {
    std::int64_t window = config_.integer(key, 1, INT64_MAX).value_or(0);
    if (tokens_ >= window)
      config_.fail(
          key,
          fmt::format("full attention in every layer, or more than the {} tokens, as engines "
                      "keep different tokens beyond a window",
                      tokens_),
          window == 0 ? "no such field" : fmt::to_string(window));
    out.assumed.push_back(
        fmt::format("all tokens are cached, as they are fewer than {} ({})", key, window));
  }

  std::optional<DType> dtype() const {
    const Json* quantization = config_.find_anywhere("quantization_config");
    if (quantization != nullptr && quantization->is_object() &&
        quantization->contains("kv_cache_scheme") && !(*quantization)["kv_cache_scheme"].is_null())
      return std::nullopt;
    return config_.dtype();
  }

  void note_more_layers(KvModel& out) const {
    for (const char* key : {"num_nextn_predict_layers", "mtp_num_hidden_layers"})
      if (auto more = config_.integer(key, 0, kMostLayers); more && *more > 0)
        out.assumed.push_back(fmt::format("the cache of {} MTP layer{} ({}) is not moved", *more,
                                          *more == 1 ? "" : "s", key));
  }

  const ConfigFields& config_;
  std::int64_t tokens_;
};

}  // namespace

KvModel read_kv_model(const std::string& text, const std::string& file, std::int64_t tokens) {
  const Json whole = read_config(text, file);
  const ConfigFields config(whole, file);
  return KvReader(config, tokens).read();
}

}  // namespace reshard::sim
