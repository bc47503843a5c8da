// SPDX-License-Identifier: BSD-3-Clause
// A base class that reads a topology file as lines of words and reports errors with FILE:LINE.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/limits.h"
#include "core/base/units.h"

namespace reshard {

class Words {
 public:
  // Both must outlive this.
  Words(std::string_view text, std::string_view file)
      : text_(after_byte_order_mark(text)), file_(file) {}

 protected:
  bool next_line() {
    if (text_.empty()) return false;
    line_ = take_line(text_);
    ++line_number_;
    if (line_.size() > kMaxLineBytes)
      throw InputError(
          fmt::format("{}: expected lines of at most 64 MiB, found a longer one", place()));
    rest_ = line_;
    return true;
  }

  // The next word; empty at the end of the line or at a comment.
  std::string_view token() {
    std::size_t begin = std::min(rest_.find_first_not_of(" \t"), rest_.size());
    rest_.remove_prefix(begin);
    if (rest_.empty() || rest_.front() == '#') return rest_ = {};
    std::string_view word = rest_.substr(0, rest_.find_first_of(" \t"));
    rest_.remove_prefix(word.size());
    return word;
  }

  std::string place() const {
    return fmt::format("{}:{}", file_, std::max(line_number_, std::int64_t{1}));
  }

  [[noreturn]] void fail(std::string_view expected, std::string_view found) const {
    contradict(expected, found.empty() ? std::string("the end of the line") : quoted(found));
  }

  [[noreturn]] void contradict(std::string_view expected, std::string_view found) const {
    throw InputError(fmt::format("{}: expected {}, found {}", place(), expected, found));
  }

  void expect(std::string_view word) {
    if (std::string_view found = token(); found != word) fail(fmt::format("'{}'", word), found);
  }

  std::int64_t integer(std::string_view what, std::int64_t low, std::int64_t high) {
    std::string_view word = token();
    std::string where = place();
    Cursor cursor(word, where);
    std::int64_t value = cursor.integer(what, low, high);
    cursor.expect_end();
    return value;
  }

  std::int64_t rate() { return parse_bytes_per_s(token(), place()); }

  // A letter, then letters, digits, '_' and '-', at most 64 in total.
  static bool is_name(std::string_view name) {
    constexpr std::string_view kFollowers = "0123456789_-";
    auto is_letter = [](char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; };
    return !name.empty() && name.size() <= kMaxNameLength && is_letter(name.front()) &&
           std::all_of(name.begin(), name.end(), [&](char c) {
             return is_letter(c) || kFollowers.find(c) != std::string_view::npos;
           });
  }

  std::string_view text_, file_, line_, rest_;
  std::int64_t line_number_ = 0;
};

}  // namespace reshard
