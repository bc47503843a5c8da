// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/printable.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include <fmt/core.h>

#include "core/base/ids.h"

namespace reshard {
namespace {

// Line and paragraph separators, characters that change the writing direction, invisible
// characters.
bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code <= 0xA0) || code == 0xAD || code == 0x61C ||
         (code >= 0x200B && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2060 && code <= 0x2069) || code == 0xFEFF;
}

std::string escaped(char32_t code) {
  switch (code) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return code < 0x80 ? fmt::format("\\x{:02x}", static_cast<std::uint32_t>(code))
                         : fmt::format("\\u{:04x}", static_cast<std::uint32_t>(code));
  }
}

std::string made_printable(std::string_view text, std::size_t limit, bool lines_stay) {
  // Nearly all text is plain.
  auto is_plain = [](char c) { return c >= 0x20 && c < 0x7F; };
  if (text.size() <= limit && std::all_of(text.begin(), text.end(), is_plain))
    return std::string(text);
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    auto [bytes, code] = first_character(text.substr(at));
    std::size_t end = at + std::max<std::size_t>(bytes, 1);
    if (end > limit) return out + "...";
    if (bytes == 0)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at]));
    else if (is_control(code) && !(lines_stay && code == '\n'))
      out += escaped(code);
    else
      out += text.substr(at, bytes);
    at = end;
  }
  return out;
}

}  // namespace

Character first_character(std::string_view text) {
  auto first = static_cast<unsigned char>(text[0]);
  auto length = to_index(std::countl_one(first));
  if (length == 0) return {1, first};
  if (length < 2 || length > 4 || text.size() < length) return {0, 0};
  char32_t code = first & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0U) != 0x80U) return {0, 0};
    code = code << 6 | (next & 0x3FU);
  }
  // Only the shortest form is valid: the smallest code point of each length.
  constexpr char32_t kLeast[] = {0x80, 0x800, 0x10000};
  bool good = code >= kLeast[length - 2] && code < 0x110000 && (code < 0xD800 || code >= 0xE000);
  return good ? Character{length, code} : Character{0, 0};
}

std::string printable(std::string_view text, std::size_t limit) {
  return made_printable(text, limit, false);
}

std::string printable_lines(std::string_view text, std::size_t limit) {
  return made_printable(text, limit, true);
}

std::string shown_path(std::string_view path) {
  constexpr std::size_t kWhole = 200, kBegin = 80, kEnd = 100;
  if (path.size() <= kWhole) return printable(path);
  std::size_t end = path.size() - kEnd;
  // Do not begin inside a character.
  while (end < path.size() && (static_cast<unsigned char>(path[end]) & 0xC0U) == 0x80U) ++end;
  return printable(path, kBegin) + printable(path.substr(end));
}

}  // namespace reshard
