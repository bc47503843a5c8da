// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/parallelism.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"

namespace reshard::sim {

Parallelism::Parallelism(std::string_view text, std::string_view field) : field_(field) {
  constexpr std::string_view kBlanks = " \t\r\n";
  for (std::size_t at = text.find_first_not_of(kBlanks); at != std::string_view::npos;
       at = text.find_first_not_of(kBlanks, at)) {
    std::string_view word = text.substr(at, text.find_first_of(kBlanks, at) - at);
    at += word.size();
    if (framework_.empty()) {
      framework_ = word;
      continue;
    }
    std::size_t equals = word.find('=');
    std::string_view key = word.substr(0, equals);
    if (find(key) != nullptr)
      throw InputError(
          fmt::format("{}: expected {} once, found it twice", field_, reshard::quoted(key)));
    bool has_value = equals != std::string_view::npos;
    words_.push_back({std::string(key), has_value ? std::string(word.substr(equals + 1)) : "",
                      has_value, false});
  }
  if (framework_.empty())
    throw InputError(
        fmt::format("{}: expected a framework such as 'megatron tp=8 pp=2', found nothing", field));
}

std::string Parallelism::text() const {
  std::string out = framework_;
  for (const Word& word : words_)
    out += fmt::format(" {}{}{}", word.key, word.has_value ? "=" : "", word.value);
  return out;
}

Parallelism::Word* Parallelism::find(std::string_view key) {
  auto found =
      std::find_if(words_.begin(), words_.end(), [&](const Word& word) { return word.key == key; });
  return found == words_.end() ? nullptr : &*found;
}

bool Parallelism::has(std::string_view key) const {
  return const_cast<Parallelism*>(this)->find(key) != nullptr;
}

void Parallelism::fail(std::string_view key, std::string_view expected) const {
  const Word* word = const_cast<Parallelism*>(this)->find(key);
  throw InputError(fmt::format("{}: {}: expected {}, found {}", field_, key, expected,
                               word == nullptr   ? "nothing"
                               : word->has_value ? reshard::quoted(word->value)
                                                 : "no value"));
}

std::int64_t Parallelism::number(std::string_view key, std::int64_t absent, std::int64_t most) {
  Word* word = find(key);
  if (word == nullptr) return absent;
  word->read = true;
  std::int64_t out = 0;
  const char *begin = word->value.data(), *end = begin + word->value.size();
  auto [rest, error] = std::from_chars(begin, end, out);
  if (error != std::errc{} || rest != end || out < 1 || out > most)
    fail(key, fmt::format("a number from 1 to {}", most));
  return out;
}

bool Parallelism::flag(std::string_view key) {
  Word* word = find(key);
  if (word == nullptr) return false;
  word->read = true;
  if (word->has_value) fail(key, "the word alone");
  return true;
}

std::string Parallelism::word(std::string_view key, std::string_view absent) {
  Word* word = find(key);
  if (word == nullptr) return std::string(absent);
  word->read = true;
  if (word->value.empty()) fail(key, "a value");
  return word->value;
}

std::string Parallelism::choice(std::string_view key, const std::vector<std::string_view>& words) {
  std::string out = word(key, words.front());
  if (std::find(words.begin(), words.end(), out) == words.end())
    fail(key, fmt::format("{}", fmt::join(words, " or ")));
  return out;
}

void Parallelism::set(std::string_view key, std::string_view value) {
  if (Word* word = find(key))
    *word = {std::string(key), std::string(value), true, false};
  else
    words_.push_back({std::string(key), std::string(value), true, false});
}

void Parallelism::refuse_others(std::string_view known) const {
  for (const Word& word : words_)
    if (!word.read)
      throw InputError(fmt::format("{}: expected {} with {}, found {}", field_, framework_, known,
                                   reshard::quoted(word.key)));
}

}  // namespace reshard::sim
