// SPDX-License-Identifier: BSD-3-Clause
// The arrays in which a rank keeps its cache: their dims in memory order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/models/kv/kv_model.h"

namespace reshard::sim {

enum class KvDim : std::uint8_t { Layers, Kv, Blocks, Heads, Tokens, Channels };

// Without the dim Layers, each layer has an array of its own; without Kv, keys and values have
// separate arrays.
struct KvForm {
  std::string name;         // as the user gave it
  std::vector<KvDim> dims;  // outermost first
  bool has(KvDim dim) const;
};

// Reads a list of dims such as "kv,blocks,tokens,heads,dim", or the name of a known form. The list
// has blocks, tokens, heads and dim once, and layers and kv at most once; for a latent cache it has
// no heads and no kv. Throws InputError naming `field`.
KvForm parse_kv_form(std::string_view text, std::string_view field, const KvModel& model);
// "vllm: kv,blocks,tokens,heads,dim; ...".
std::string known_kv_forms();

}  // namespace reshard::sim
