// SPDX-License-Identifier: BSD-3-Clause
// The numbers in a tensor's name: "layers.3.mlp.experts.7.up" is "layers.#.mlp.experts.#.up" with
// 3 and 7.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reshard {

struct NumberedName {
  std::string pattern;
  struct Number {
    std::int64_t value;
    std::size_t end;  // of its # in the pattern
  };
  std::vector<Number> numbers;

  // The index of the one number that differs; -1 if there is not exactly one, or if the patterns
  // differ.
  int only_difference(const NumberedName& other) const;
  // The pattern up to number `number`.
  std::string_view prefix(std::size_t number) const {
    return std::string_view(pattern).substr(0, numbers[number].end);
  }
  // The word before the number: "layers".
  std::string label(std::size_t number) const;
  // The name with another value of that number.
  std::string with(std::size_t number, std::int64_t value) const;
};

// A number is a word of digits between dots.
NumberedName numbered(std::string_view name);

}  // namespace reshard
