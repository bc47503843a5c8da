// SPDX-License-Identifier: BSD-3-Clause
// One JSON object of a trace, read field by field without trust: what is missing, of another type,
// out of range, given twice or unknown is an InputError that names FILE:LINE and the field.
// Included by the trace reader only: the JSON library stays out of other headers.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"

namespace reshard::sim {

using TraceJson = nlohmann::json;

// One object from one line. Refuses anything else, nesting deeper than a trace has, a key given
// twice, and more than 2^20 + 64 values, before it is held in memory.
TraceJson parse_json_line(const std::string& line, const std::string& place);

class TraceFields {
 public:
  // `place` is "FILE:LINE". Keeps references to both.
  TraceFields(const TraceJson& object, const std::string& place) : object_(object), place_(place) {}

  bool has(const char* key) const { return object_.contains(key); }
  // The value, marked as read; null where there is none.
  const TraceJson* find(const char* key);
  const TraceJson& required(const char* key, std::string_view what);

  std::string string(const char* key, std::string_view what);
  std::optional<std::string> optional_string(const char* key, std::string_view what);
  std::int64_t integer(const char* key, std::int64_t low, std::int64_t high);
  std::int64_t integer(const char* key, std::int64_t low, std::int64_t high, std::int64_t absent);
  // "0-7" or [0, 1, 2]: at least one rank, each once.
  std::vector<Rank> ranks(const char* key);
  // "32,8192" or [32, 8192], as text.
  std::string shape(const char* key);
  // A string, or an integer as its decimal text.
  std::string id_of(const TraceJson& value, std::string_view field) const;

  // Throws for the first field, in order of name, that was not read.
  void refuse_others(std::string_view of) const;
  // "FILE:LINE: KEY: expected WHAT, found VALUE".
  [[noreturn]] void fail(std::string_view key, std::string_view expected,
                         const TraceJson& found) const;

 private:
  std::int64_t integer_of(const TraceJson& value, std::string_view key, std::int64_t low,
                          std::int64_t high) const;

  const TraceJson& object_;
  const std::string& place_;
  std::vector<std::string_view> read_;
};

}  // namespace reshard::sim
