// SPDX-License-Identifier: BSD-3-Clause
// Texts that are nearly right: a correct text with one to three small changes of its words,
// numbers, signs and lines. About as many are still accepted as are refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/prng.h"

namespace reshard::test {

class TextChanges {
 public:
  // Words that a change may insert anywhere, and numbers that may replace another one.
  TextChanges(std::vector<std::string> words, std::vector<std::string> numbers)
      : words_(std::move(words)), numbers_(std::move(numbers)) {}

  std::string changed(Prng& prng, std::string_view text) const {
    std::vector<std::string> tokens = tokens_of(text);
    for (std::int64_t n = prng.one_in(3) ? prng.between(2, 3) : 1; n > 0; --n)
      if (text.find('\n') != std::string_view::npos && prng.one_in(5))
        change_lines(prng, tokens);
      else
        change_token(prng, tokens);
    return joined(tokens);
  }

 private:
  using Tokens = std::vector<std::string>;

  static bool is_word(char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  // Splits into words, numbers, and single other characters.
  static Tokens tokens_of(std::string_view text) {
    Tokens out;
    for (std::size_t i = 0; i < text.size();) {
      std::size_t j = i + 1;
      if (is_word(text[i]))
        while (j < text.size() && is_word(text[j])) ++j;
      else if (is_digit(text[i]))
        while (j < text.size() && is_digit(text[j])) ++j;
      out.emplace_back(text.substr(i, j - i));
      i = j;
    }
    return out;
  }
  static std::string joined(const Tokens& tokens) {
    std::string out;
    for (const std::string& token : tokens) out += token;
    return out;
  }
  static std::size_t place_in(Prng& prng, const Tokens& tokens) {
    return static_cast<std::size_t>(prng.below(static_cast<std::int64_t>(tokens.size())));
  }

  std::string other_number(Prng& prng, const std::string& number) const {
    if (number.size() > 18 || prng.one_in(4)) return prng.pick(numbers_);
    std::int64_t value = std::stoll(number);
    switch (prng.below(4)) {
      case 0:
        return std::to_string(value + 1);
      case 1:
        return std::to_string(value > 0 ? value - 1 : 1);
      case 2:
        return std::to_string(2 * value + (prng.one_in(2) ? 1 : 0));
      default:
        return number + prng.pick(std::vector<std::string>{"0", "5", ".5", "e1", "-1"});
    }
  }

  void change_token(Prng& prng, Tokens& tokens) const {
    if (tokens.empty()) tokens.push_back(prng.pick(words_));
    std::size_t at = place_in(prng, tokens);
    // A changed number is most often still valid.
    for (int tries = 0; tries < 3 && !is_digit(tokens[at].front()); ++tries)
      if (prng.one_in(2)) at = place_in(prng, tokens);
    std::string& token = tokens[at];
    auto here = tokens.begin() + static_cast<std::ptrdiff_t>(at);
    if (is_digit(token.front()) && !prng.one_in(4)) {
      token = other_number(prng, token);
      return;
    }
    switch (prng.below(8)) {
      case 0:
        tokens.erase(here);
        break;
      case 1:
        tokens.insert(here, token);
        break;
      case 2:
        std::swap(token, tokens[at + 1 < tokens.size() ? at + 1 : 0]);
        break;
      case 3:
        token = tokens[place_in(prng, tokens)];
        break;
      case 4:
      case 5:
        token = prng.pick(words_);
        break;
      case 6:
        tokens.insert(here, prng.pick(words_));
        break;
      default:
        token.erase(static_cast<std::size_t>(prng.below(static_cast<std::int64_t>(token.size()))),
                    1);
        if (token.empty()) tokens.erase(here);
        break;
    }
  }

  static void change_lines(Prng& prng, Tokens& tokens) {
    std::vector<std::string> lines(1);
    for (const std::string& token : tokens) {
      lines.back() += token;
      if (token == "\n") lines.emplace_back();
    }
    std::size_t at = place_in(prng, lines), other = place_in(prng, lines);
    auto here = lines.begin() + static_cast<std::ptrdiff_t>(at);
    switch (prng.below(5)) {
      case 0:
        lines.erase(here);
        break;
      case 1:
        lines.insert(here, std::string(*here));
        break;
      case 2:
        std::swap(lines[at], lines[other]);
        break;
      case 3:
        lines.insert(here, std::string(lines[other]));
        break;
      default:
        lines.resize(at);
        break;
    }
    tokens = tokens_of(joined(lines));
  }

  std::vector<std::string> words_, numbers_;
};

}  // namespace reshard::test
