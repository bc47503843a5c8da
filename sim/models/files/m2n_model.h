// SPDX-License-Identifier: BSD-3-Clause
// The tensors of a model as the M2N benchmark sees them, and what it derives from their names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/models/files/foreign_layouts.h"

namespace reshard::sim {

struct M2nModel {
  std::vector<ForeignTensor> tensors;  // ascending by name; experts are joined
  std::vector<std::string> left_out;   // tensors of more than 3 dims
  std::vector<std::string> as_bf16;    // tensors of dtypes that the benchmark does not know
  std::int64_t layers = 0;             // one more than the greatest layer number
};
// Throws InputError.
M2nModel parse_m2n_model(std::string_view text, const std::string& place);

// The first number in "layers.<number>". Throws InputError if it is 2^31 or more.
std::optional<std::int64_t> layer_of(std::string_view name);
bool is_expert(std::string_view name);
// The dim along which tensor parallelism cuts the tensor of that name (for experts, not counting
// the dim of experts); nothing if the tensor is not cut.
std::optional<int> cut_dim(std::string_view name);

}  // namespace reshard::sim
