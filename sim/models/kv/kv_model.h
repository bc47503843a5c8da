// SPDX-License-Identifier: BSD-3-Clause
// What a model caches for each token, from its config.json.
//
// A model is refused if it caches anything other than keys and values of all tokens in every layer
// (sliding windows, linear attention, layers that share a cache, sparse indexers); the message
// names the field. Engines differ in what they keep for these, and a guess would give the wrong
// bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/dtype.h"

namespace reshard::sim {

struct KvModel {
  std::string type;  // model_type in the file; may be empty
  std::int64_t layers = 0;
  std::int64_t heads = 1;  // KV heads
  // The number of channels per head. Without values (MLA), a token has one latent vector of
  // `key_dim` channels for all heads.
  std::int64_t key_dim = 0, value_dim = 0;
  std::optional<DType> dtype = {};  // of the weights, unless the file states that caches differ
  std::vector<std::string> assumed = {};

  bool is_latent() const { return value_dim == 0; }
  // Per token and layer.
  std::int64_t channels() const { return heads * (key_dim + value_dim); }
};

// `text` is a config.json as Hugging Face's transformers writes it; `file` names it in messages. A
// multimodal model has its fields in text_config. A window is accepted if it is longer than
// `tokens`. Throws InputError.
KvModel read_kv_model(const std::string& text, const std::string& file, std::int64_t tokens);

}  // namespace reshard::sim
