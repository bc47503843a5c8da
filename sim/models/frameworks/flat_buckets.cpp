// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/frameworks/flat_buckets.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/core.h>

namespace reshard::sim {

void FlatBuckets::write(const std::string& name, const std::vector<std::string>& axes,
                        std::int64_t ranks, std::int64_t most, std::string_view dtype,
                        SideLines& lines) const {
  constexpr std::int64_t kAlign = 64, kPad = 128;
  std::vector<std::string> bucket;
  std::int64_t elements = 0, number = 0;
  auto close = [&] {
    if (bucket.empty()) return;
    lines.flat_of(fmt::format("{}{}", name, number++), bucket, axes, kAlign, std::lcm(ranks, kPad),
                  dtype);
    bucket.clear();
    elements = 0;
  };
  for (auto at = parameters_.rbegin(); at != parameters_.rend(); ++at) {
    if (at->is_alone) close();
    bucket.push_back(at->name);
    elements = (elements + kAlign - 1) / kAlign * kAlign + at->elements;
    if (at->is_alone || elements >= most) close();
  }
  close();
}

int registered_at(std::string_view name) {
  constexpr auto kOrder = std::to_array<std::string_view>({
      "input_layernorm",
      "self_attention.core_attention",
      "self_attention.linear_proj",
      "self_attention.linear_qkv.layer_norm",
      "self_attention.linear_qkv",
      "self_attention.linear_q_proj",
      "self_attention.linear_q_down_proj",
      "self_attention.linear_q_up_proj.layer_norm",
      "self_attention.linear_q_up_proj",
      "self_attention.linear_kv_down_proj",
      "self_attention.linear_kv_up_proj.layer_norm",
      "self_attention.linear_kv_up_proj",
      "self_attention.q_layernorm",
      "self_attention.k_layernorm",
      "self_attention.kv_layernorm",
      "pre_mlp_layernorm",
      "mlp.router",
      "mlp.experts.local_experts",
      "mlp.experts.linear_fc1",
      "mlp.experts.linear_fc2",
      "mlp.shared_experts.gate_weight",
      "mlp.shared_experts.linear_fc1",
      "mlp.shared_experts.linear_fc2",
      "mlp.linear_fc1.layer_norm",
      "mlp.linear_fc1",
      "mlp.linear_fc2",
  });
  for (std::size_t i = 0; i < kOrder.size(); ++i)
    if (name.starts_with(kOrder[i])) return static_cast<int>(i);
  return static_cast<int>(kOrder.size());
}

}  // namespace reshard::sim
