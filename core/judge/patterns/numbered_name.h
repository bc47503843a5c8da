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

  // Which of them differs, if it is the only one and the patterns are equal; else -1.
  int only_difference(const NumberedName& other) const;
  // The pattern up to a number.
  std::string_view prefix(std::size_t number) const {
    return std::string_view(pattern).substr(0, numbers[number].end);
  }
  // The word before it: "layers".
  std::string label(std::size_t number) const;
  // The name with another number there.
  std::string with(std::size_t number, std::int64_t value) const;
};

// Numbers are words of digits between dots.
NumberedName numbered(std::string_view name);

}  // namespace reshard
