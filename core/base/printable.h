// SPDX-License-Identifier: BSD-3-Clause
// Text that others wrote (arguments, names of files, fields of a trace), made fit for messages,
// tables and pages: it may hold bytes that are no UTF-8, what moves a terminal's cursor or turns
// its direction, and it may be of any length.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace reshard {

// Bytes of the character of UTF-8 that `text`, which is not empty, begins with, and its code; 0
// bytes where it begins with none.
struct Character {
  std::size_t bytes;
  char32_t code;
};
Character first_character(std::string_view text);

// `text` as one line of UTF-8: line ends, control characters and those that change the direction
// of writing as "\n", "\x1b", "\u202e", bytes that are no UTF-8 as "\xff". Of more than `limit`
// bytes the first, and "...".
std::string printable(std::string_view text, std::size_t limit = std::string_view::npos);

// The same, but line ends stay.
std::string printable_lines(std::string_view text, std::size_t limit = std::string_view::npos);

// A file's name as messages show it: of a long one the beginning and the end.
std::string shown_path(std::string_view path);

}  // namespace reshard
