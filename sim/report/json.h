// SPDX-License-Identifier: BSD-3-Clause
// Helpers shared by the JSON writers. Only they include it, so that the JSON library stays out of
// other headers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/digest.h"
#include "sim/study/run_facts.h"
#include "sim/study/studies.h"

namespace reshard::sim {

using Json = nlohmann::ordered_json;

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// Null for an empty text.
inline Json or_null(std::string_view text) { return text.empty() ? Json(nullptr) : Json(text); }

inline Json digest_json(const std::optional<Digest>& digest) {
  return digest ? Json(digest->hex()) : Json(nullptr);
}

// An array with row(element) for each element.
template <class List, class Row>
Json list_json(const List& list, Row&& row) {
  Json out = Json::array();
  for (const auto& each : list) out.push_back(row(each));
  return out;
}

inline Json values_json(const DimVector& values) {
  return list_json(values, [](std::int64_t value) { return value; });
}

// Indented by two spaces, one newline at the end. Invalid UTF-8 is replaced.
inline std::string written(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// A text as JSON, in quotes. Invalid UTF-8 is replaced.
inline std::string json_text(std::string_view text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// ---- parts of JSON that several reports share

// value / scale as a number: the nearest double, which prints with at most log10(scale) decimals.
Json decimal_json(std::optional<std::int64_t> value, double scale = 10'000.0);

Json cache_json(const CacheStatistics& cache);
Json links_json(const std::vector<LinkUse>& links, std::int64_t end_ps, std::int64_t scale);
Json classes_json(const std::vector<ClassUse>& classes);

// "critical_path" and "critical_causes": nothing without a path, null if it was not recorded.
// `start` returns the first fields of a part's row.
void add_path(const std::optional<PathFacts>& path,
              const std::function<Json(const PathFacts::PathSpan&)>& start, Json& out);
// "phases", if there are any.
void add_phases(const std::vector<PhaseTime>& phases, Json& out);

}  // namespace reshard::sim
