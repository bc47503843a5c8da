// SPDX-License-Identifier: BSD-3-Clause
// An operator's argument as JSON has it; of objects, which none is, none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/ops/attributes.h"

namespace reshard::sim {

// `Json`: nlohmann's, of any kind.
template <class Json>
OpValue op_value_of(const Json& json) {
  if (json.is_boolean()) return OpValue(json.template get<bool>());
  if (json.is_number_integer()) return OpValue(json.template get<std::int64_t>());
  if (json.is_number()) return OpValue(json.template get<double>());
  if (json.is_string()) return OpValue(json.template get<std::string>());
  if (!json.is_array()) return {};
  std::vector<OpValue> list;
  for (const Json& item : json) list.push_back(op_value_of(item));
  return OpValue(std::move(list));
}

}  // namespace reshard::sim
