// SPDX-License-Identifier: BSD-3-Clause
// Reader of untrusted JSON; all JSON input passes through it. Levels, values and fields are counted
// during parsing, so a text beyond the limits is refused before it is stored, and code that walks,
// copies or destroys a value cannot run out of stack. A field given twice is refused too: JSON
// leaves open which one counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/base/limits.h"

namespace reshard::sim {

struct JsonLimits {
  int levels;           // of nesting
  std::int64_t values;  // in total
  std::size_t fields;   // of one object
};
// For one line of our own formats, or one argument.
inline constexpr JsonLimits kJsonLine{kMaxJsonNesting, kMaxJsonValues, std::size_t{1} << 20};
// For a whole file: reports, and files of other tools. Fields are limited because an object of a
// report keeps its fields in a list, which is searched linearly.
inline constexpr JsonLimits kJsonFile{32, std::int64_t{1} << 27, 4096};

// Throws InputError "PLACE: expected one JSON object ..." if `text` is not JSON or exceeds the
// limits. `Json` is nlohmann::json or nlohmann::ordered_json.
template <class Json>
Json read_json(std::string_view text, const std::string& place, const JsonLimits& limits);

// The same, but returns a discarded value (Json::is_discarded) if `text` is not JSON.
template <class Json>
Json read_json_or_other(std::string_view text, const std::string& place, const JsonLimits& limits);

extern template nlohmann::json read_json(std::string_view, const std::string&, const JsonLimits&);
extern template nlohmann::json read_json_or_other(std::string_view, const std::string&,
                                                  const JsonLimits&);
extern template nlohmann::ordered_json read_json_or_other(std::string_view, const std::string&,
                                                          const JsonLimits&);

// A value as messages show it: "'abc'", "17", "a list of 3", "an object".
std::string shown(const nlohmann::json& value);

// A JSON integer as a signed 64-bit integer; nothing if it is larger or not an integer.
template <class Json>
std::optional<std::int64_t> integer_in(const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() &&
      value.template get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
    return std::nullopt;
  return value.template get<std::int64_t>();
}

// The same, but only within a range.
template <class Json>
std::optional<std::int64_t> integer_in(const Json& value, std::int64_t low, std::int64_t high) {
  std::optional<std::int64_t> found = integer_in(value);
  return found && *found >= low && *found <= high ? found : std::nullopt;
}

}  // namespace reshard::sim
