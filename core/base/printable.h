// SPDX-License-Identifier: BSD-3-Clause
// Makes untrusted text (arguments, file names, fields of a trace) fit for messages, tables and
// pages: it may have bytes that are not UTF-8, characters that move a terminal's cursor or change
// the writing direction, and any length.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace reshard {

// The UTF-8 character at the beginning of `text`, which must not be empty: its length in bytes and
// its code point. 0 bytes if no valid character begins there.
struct Character {
  std::size_t bytes;
  char32_t code;
};
Character first_character(std::string_view text);

// `text` as one line of UTF-8. Line ends, control characters and characters that change the writing
// direction become "\n", "\x1b", "\u202e"; bytes that are not UTF-8 become "\xff". Beyond `limit`
// bytes the text is cut and ends in "...".
std::string printable(std::string_view text, std::size_t limit = std::string_view::npos);

// The same, but keeps '\n'.
std::string printable_lines(std::string_view text, std::size_t limit = std::string_view::npos);

// A path as messages show it: a long one is reduced to its beginning and its end.
std::string shown_path(std::string_view path);

}  // namespace reshard
