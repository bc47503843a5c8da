// SPDX-License-Identifier: BSD-3-Clause
// What the writers of JSON share. Included by them only: the JSON library stays out of other
// headers.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/digest.h"

namespace reshard::sim {

using Json = nlohmann::ordered_json;

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// Null for the empty text.
inline Json or_null(std::string_view text) { return text.empty() ? Json(nullptr) : Json(text); }

inline Json digest_json(const std::optional<Digest>& digest) {
  return digest ? Json(digest->hex()) : Json(nullptr);
}

// What `row` makes of each element.
template <class List, class Row>
Json list_json(const List& list, Row&& row) {
  Json out = Json::array();
  for (const auto& each : list) out.push_back(row(each));
  return out;
}

// Two-blank indentation, one newline at the end; text that is no UTF-8 is made so.
inline std::string written(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace reshard::sim
