// SPDX-License-Identifier: BSD-3-Clause
// Implements Cursor, the other functions of cursor.h, and fail_check of errors.h.
#include "core/base/cursor.h"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/ids.h"
#include "core/base/printable.h"

namespace reshard {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

void fail_check(const char* condition, const char* file, int line, const std::string& detail) {
  // Without the folder: messages must not depend on where the tree was built.
  std::string_view name(file);
  name.remove_prefix(name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/') + 1);
  throw CheckFailure(fmt::format("check `{}` failed at {}:{}: {}", condition, name, line, detail));
}

std::string_view after_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

std::string_view take_line(std::string_view& text) {
  std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string quoted(std::string_view text, std::size_t limit) {
  return fmt::format("'{}'", printable(text, limit));
}

void Cursor::skip_spaces() {
  while (!at_end() && std::string_view(" \t\r\n").find(peek()) != std::string_view::npos)
    ++position_;
}

bool Cursor::accept(std::string_view token) {
  if (rest().substr(0, token.size()) != token) return false;
  position_ += token.size();
  return true;
}

void Cursor::expect(std::string_view token) {
  if (!accept(token)) fail(fmt::format("'{}'", token));
}

std::string_view Cursor::word() {
  std::size_t begin = position_;
  if (!is_letter(peek())) return {};
  while (is_letter(peek()) || is_digit(peek()) || peek() == '-' || peek() == '.') ++position_;
  return text_.substr(begin, position_ - begin);
}

std::string Cursor::quoted_word() {
  std::string_view quote = peek() == '"' ? "\"" : "'";
  expect(quote);
  std::string found(word());
  expect(quote);
  return found;
}

std::int64_t Cursor::integer(std::string_view what, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  const char* begin = text_.data() + position_;
  auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (error == std::errc::invalid_argument) fail(fmt::format("{} (an integer)", what));
  if (error != std::errc() || value < low || value > high)
    fail(fmt::format("{} between {} and {}", what, low, high));
  position_ += to_index(end - begin);
  return value;
}

void Cursor::expect_end() {
  if (!at_end()) fail("the end");
}

void Cursor::fail(std::string_view expected) const {
  std::string found = at_end() ? "the end" : quoted(rest());
  throw InputError(fmt::format("{}: expected {}, found {}", field_, expected, found));
}

}  // namespace reshard
