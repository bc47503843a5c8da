// SPDX-License-Identifier: BSD-3-Clause
// Words of the lines of tables that tools print, possibly altered by terminals and web pages.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reshard::sim {

// The line without escapes for underlining and colour: ESC [ .. letter.
inline std::string without_escapes(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      out += line[i];
      continue;
    }
    while (i + 1 < line.size() && !((line[i] | 32) >= 'a' && (line[i] | 32) <= 'z')) ++i;
  }
  return out;
}

inline std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> out;
  constexpr std::string_view kBlanks = " \t\r";
  for (std::size_t at = 0;;) {
    std::size_t begin = line.find_first_not_of(kBlanks, at);
    if (begin == std::string_view::npos) return out;
    at = std::min(line.find_first_of(kBlanks, begin), line.size());
    out.push_back(line.substr(begin, at - begin));
  }
}

inline std::optional<std::int64_t> whole_number(std::string_view word) {
  std::int64_t value = 0;
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

}  // namespace reshard::sim
