// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/models/small_models.h"

#include <map>
#include <optional>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "core/stored/view.h"
#include "sim/models/weights/config.h"
#include "sim/trace/line_reader.h"

namespace reshard::test {

std::string small_config(const std::string& family, const std::string& fields) {
  return fmt::format(R"({{"model_type": "{}", "num_hidden_layers": 2, "hidden_size": 8,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 2, "intermediate_size": 12,
    "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "moe_intermediate_size": 4,
    "n_shared_experts": 1, "shared_expert_intermediate_size": 4, "first_k_dense_replace": 1,
    "kv_lora_rank": 4, "q_lora_rank": 6, "qk_nope_head_dim": 4, "qk_rope_head_dim": 2,
    "v_head_dim": 4, "vocab_size": 32, "torch_dtype": "bfloat16"{}}})",
                     family, fields);
}

sim::Model small_model(const std::string& family, const std::string& fields) {
  return sim::parse_config(small_config(family, fields), "c");
}

sim::ModelLayouts layouts_of(const std::string& lines) {
  std::istringstream in(lines);
  sim::LineReader reader(in, "l");
  return sim::read_sides(reader, "l");
}

std::string lost_tensor(const sim::ModelLayouts& layouts, const Stored& side) {
  const ModelTensors& tensors = *layouts.tensors;
  std::vector<std::vector<bool>> there;
  for (std::size_t t = 0; t < tensors.size(); ++t)
    there.emplace_back(
        static_cast<std::size_t>(element_count(tensors[id_of<ModelTensorId>(t)].shape)), false);
  for (const StoredBuffer& buffer : side.buffers())
    for (const StoredPart& part : buffer.parts) {
      const ModelTensorId id = tensors[part.tensor].same_as;
      const DimVector strides = row_major(tensors[id].shape);
      DimVector at(part.box.dims(), 0);
      do {
        std::int64_t element = 0;
        for (int d = 0; d < at.size(); ++d) element += (part.box.lo[d] + at[d]) * strides[d];
        there[to_index(id)][static_cast<std::size_t>(element)] = true;
      } while (next_index(at, [&](int d) { return part.box.extent(d); }));
    }
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const ModelTensor& tensor = tensors[id_of<ModelTensorId>(t)];
    if (to_index(tensor.same_as) != t) continue;
    for (bool is_there : there[t])
      if (!is_there) return tensor.name;
  }
  return "";
}

std::string rows_in(const Stored& side, int rank, const std::string& buffer) {
  std::optional<StoredBufferId> id = side.find(Rank{rank}, buffer);
  if (!id) return "none";
  std::map<std::int64_t, std::string> found;
  for (const StoredPart& part : side.buffers()[*id].parts) {
    std::string name = side.tensors()[part.tensor].name;
    if (name.ends_with(".weight")) name.resize(name.size() - std::string(".weight").size());
    found[part.offset] +=
        fmt::format(" {}[{}:{}]", name.substr(name.rfind('.') + 1), part.box.lo[0], part.box.hi[0]);
  }
  std::string out;
  for (const auto& [offset, text] : found) out += text;
  return out.substr(1);
}

}  // namespace reshard::test
