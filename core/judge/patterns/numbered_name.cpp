// SPDX-License-Identifier: BSD-3-Clause
#include "core/judge/patterns/numbered_name.h"

#include <algorithm>
#include <charconv>

#include "core/base/ids.h"

namespace reshard {

NumberedName numbered(std::string_view name) {
  NumberedName out;
  for (std::size_t begin = 0; begin <= name.size();) {
    std::size_t end = std::min(name.find('.', begin), name.size());
    std::string_view word = name.substr(begin, end - begin);
    std::int64_t value = 0;
    auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    bool is_number = !word.empty() && word[0] != '-' && error == std::errc() &&
                     stop == word.data() + word.size();
    out.pattern += is_number ? "#" : word;
    if (is_number) out.numbers.push_back({value, out.pattern.size()});
    if (end < name.size()) out.pattern += '.';
    begin = end + 1;
  }
  return out;
}

int NumberedName::only_difference(const NumberedName& other) const {
  if (pattern != other.pattern) return -1;
  int out = -1;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i].value == other.numbers[i].value) continue;
    if (out >= 0) return -1;
    out = static_cast<int>(i);
  }
  return out;
}

std::string NumberedName::label(std::size_t number) const {
  std::string_view before = prefix(number).substr(0, numbers[number].end - 1);
  if (before.empty()) return "tensors";
  before.remove_suffix(1);
  return std::string(before.substr(before.rfind('.') + 1));
}

std::string NumberedName::with(std::size_t number, std::int64_t value) const {
  std::string out;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    out += pattern.substr(begin, numbers[i].end - 1 - begin);
    out += std::to_string(i == number ? value : numbers[i].value);
    begin = numbers[i].end;
  }
  return out + pattern.substr(begin);
}

}  // namespace reshard
