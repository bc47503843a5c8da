// SPDX-License-Identifier: BSD-3-Clause
// Converts an operator's argument from JSON.
#pragma once

#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/ops/attributes.h"
#include "sim/inputs/json_reader.h"

namespace reshard::sim {

// Throws InputError for values that are no arguments: objects, integers beyond 64 bits. Recursion
// is bounded by the depth that the JSON reader accepts.
inline OpValue op_value_of(const nlohmann::json& json) {
  if (json.is_null()) return {};
  if (json.is_boolean()) return OpValue(json.get<bool>());
  if (std::optional<std::int64_t> integer = integer_in(json)) return OpValue(*integer);
  if (json.is_number_float()) return OpValue(json.get<double>());
  if (json.is_string()) return OpValue(json.get<std::string>());
  if (!json.is_array())
    throw InputError(
        "expected null, true, false, a number, a string or a list, with integers below 2^63, "
        "found " +
        shown(json));
  std::vector<OpValue> list;
  for (const nlohmann::json& item : json) list.push_back(op_value_of(item));
  return OpValue(std::move(list));
}

}  // namespace reshard::sim
