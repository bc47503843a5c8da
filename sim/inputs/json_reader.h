// SPDX-License-Identifier: BSD-3-Clause
// JSON that is not trusted. Whatever reads JSON reads it here: a text's levels, values and fields
// are counted while it is parsed, so that what is beyond is refused before it is held, and nothing
// that walks a value, copies it or destroys it can run out of stack. A field given twice is refused
// too: JSON leaves open which one counts.
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
  int levels;           // of brackets
  std::int64_t values;  // in all
  std::size_t fields;   // of one object
};
// Of one line of our own formats, or one argument.
inline constexpr JsonLimits kJsonLine{kMaxJsonNesting, kMaxJsonValues, std::size_t{1} << 20};
// Of a whole file: reports, and what other tools write. A report's objects keep their fields in a
// list, which is searched from its begin.
inline constexpr JsonLimits kJsonFile{32, std::int64_t{1} << 27, 4096};

// Throws InputError "PLACE: expected one JSON object ..." where `text` is no JSON or beyond the
// limits. `Json` is nlohmann::json or nlohmann::ordered_json.
template <class Json>
Json read_json(std::string_view text, const std::string& place, const JsonLimits& limits);

// The same, but discarded (Json::is_discarded) where `text` is no JSON.
template <class Json>
Json read_json_or_other(std::string_view text, const std::string& place, const JsonLimits& limits);

extern template nlohmann::json read_json(std::string_view, const std::string&, const JsonLimits&);
extern template nlohmann::json read_json_or_other(std::string_view, const std::string&,
                                                  const JsonLimits&);
extern template nlohmann::ordered_json read_json_or_other(std::string_view, const std::string&,
                                                          const JsonLimits&);

// A value as messages show it: "'abc'", "17", "a list of 3", "an object".
std::string shown(const nlohmann::json& value);

// What an integer of JSON is in 64 bits with a sign: nothing where it is greater, or no integer.
template <class Json>
std::optional<std::int64_t> integer_in(const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() &&
      value.template get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
    return std::nullopt;
  return value.template get<std::int64_t>();
}

// The same within a range.
template <class Json>
std::optional<std::int64_t> integer_in(const Json& value, std::int64_t low, std::int64_t high) {
  std::optional<std::int64_t> found = integer_in(value);
  return found && *found >= low && *found <= high ? found : std::nullopt;
}

}  // namespace reshard::sim
