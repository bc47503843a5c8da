// SPDX-License-Identifier: BSD-3-Clause
// Placements that a trace's header names, because they are long: {"rows": "boxes(0: ..; 1: ..)"}.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "sim/trace/line_reader.h"

namespace reshard::sim {

class NamedLayouts {
 public:
  // Reads the header's field `layouts`. The names that it allows never look like placements.
  void read(TraceFields& header) {
    constexpr std::string_view kWhat =
        "an object of placements by name such as {\"rows\": \"boxes(0: [0:4,:]; 1: [4:8,:])\"}, "
        "names of lower-case letters, digits, '_', '-' and '.' that begin with a letter";
    const TraceJson* json = header.find("layouts");
    if (json == nullptr) return;
    if (!json->is_object()) header.fail("layouts", kWhat, *json);
    for (const auto& [name, placements] : json->items()) {
      if (!is_name(name) || !placements.is_string()) header.fail("layouts", kWhat, *json);
      by_name_.emplace(name, placements.get<std::string>());
    }
  }

  // The placements that a field of a line gives, directly or by name.
  std::string placements(TraceFields& line, const char* key) const {
    std::string found =
        line.string(key, "placements such as \"S(0)R\", or the name of a layout of the header");
    auto named = by_name_.find(found);
    return named == by_name_.end() ? found : named->second;
  }

 private:
  static bool is_name(std::string_view name) {
    auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
    for (char c : name)
      if (!is_letter(c) && std::string_view("0123456789_-.").find(c) == std::string_view::npos)
        return false;
    return !name.empty() && is_letter(name.front());
  }

  std::map<std::string, std::string> by_name_;
};

}  // namespace reshard::sim
