// SPDX-License-Identifier: BSD-3-Clause
// A read position in a text, used by every hand-written parser (placements, meshes, plan text,
// topology text). It never reads past the end, and every failure is an InputError that quotes what
// was found.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace reshard {

class Cursor {
 public:
  // `field` names the input in messages ("--from", "mesh"). Keeps views: `text` and `field` must
  // outlive the cursor.
  Cursor(std::string_view text, std::string_view field) : text_(text), field_(field) {}

  bool at_end() const { return position_ == text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[position_]; }
  std::string_view rest() const { return text_.substr(position_); }
  std::string_view field() const { return field_; }
  void skip_spaces();

  // Consumes `token` if it comes next.
  bool accept(std::string_view token);
  // Consumes `token` or throws.
  void expect(std::string_view token);
  // The longest run of letters, digits, '_', '-' and '.' that starts with a letter or '_'; may be
  // empty.
  std::string_view word();
  // A word in quotes of either kind, such as "'dp'"; returns it without them.
  std::string quoted_word();
  // "(a, b)", with or without a trailing comma: calls read() at the start of each entry.
  template <class Read>
  void tuple(Read&& read) {
    expect("(");
    for (skip_spaces(); peek() != ')'; skip_spaces()) {
      read();
      skip_spaces();
      if (!accept(",")) break;
    }
    expect(")");
  }
  // A decimal integer in [low, high], with an optional '-'. Throws if there is none or it is out of
  // range.
  std::int64_t integer(std::string_view what, std::int64_t low, std::int64_t high);
  // Throws unless everything was read.
  void expect_end();

  // "FIELD: expected EXPECTED, found 'REST'".
  [[noreturn]] void fail(std::string_view expected) const;

 private:
  std::string_view text_, field_;
  std::size_t position_ = 0;
};

// `text` without the UTF-8 byte order mark that some editors write first.
std::string_view after_byte_order_mark(std::string_view text);

// Removes the next line from `text` and returns it without its line end ("\n" or "\r\n").
std::string_view take_line(std::string_view& text);

// Quotes at most `limit` bytes of untrusted text for messages, with control characters escaped.
std::string quoted(std::string_view text, std::size_t limit = 40);

}  // namespace reshard
