// SPDX-License-Identifier: BSD-3-Clause
// What a model caches of each token, from its config.json.
//
// A file with other caches than keys and values of all tokens in every layer (sliding windows,
// linear attention, layers that share a cache, sparse indexers) is refused by the field that says
// so: what engines keep of these differs, and a guess would give the wrong bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/dtype.h"

namespace reshard::sim {

struct KvModel {
  std::string type;  // the file's model_type; may be empty
  std::int64_t layers = 0;
  std::int64_t heads = 1;  // KV heads
  // Channels of a head. Without values (MLA) a token has one latent vector of `key_dim` channels
  // for all heads.
  std::int64_t key_dim = 0, value_dim = 0;
  std::optional<DType> dtype = {};  // of the weights, unless the file says that caches differ
  std::vector<std::string> assumed = {};

  bool is_latent() const { return value_dim == 0; }
  // Of a token in a layer.
  std::int64_t channels() const { return heads * (key_dim + value_dim); }
};

// `text` is a config.json as Hugging Face's transformers writes it; `file` names it in messages.
// The fields of a model of several modalities are those in its text_config. A window is no reason
// to refuse if `tokens` are fewer. Throws InputError.
KvModel read_kv_model(const std::string& text, const std::string& file, std::int64_t tokens);

}  // namespace reshard::sim
