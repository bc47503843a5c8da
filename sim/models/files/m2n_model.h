// SPDX-License-Identifier: BSD-3-Clause
// The tensors of a model as the M2N benchmark sees them, and what it reads out of their names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/models/files/foreign_layouts.h"

namespace reshard::sim {

struct M2nModel {
  std::vector<ForeignTensor> tensors;  // ascending by name, experts joined
  std::vector<std::string> left_out;   // of more than 3 dims
  std::vector<std::string> as_bf16;    // of dtypes that the benchmark does not know
  std::int64_t layers = 0;             // one more than the greatest number of a layer
};
// Throws InputError.
M2nModel parse_m2n_model(std::string_view text, const std::string& place);

// The number in "layers.<number>", the first that a name has. Throws InputError for one from 2^31.
std::optional<std::int64_t> layer_of(std::string_view name);
bool is_expert(std::string_view name);
// The dim along which tensor parallelism cuts the tensor of that name, one of experts without the
// dim of these; none: it does not.
std::optional<int> cut_dim(std::string_view name);

}  // namespace reshard::sim
