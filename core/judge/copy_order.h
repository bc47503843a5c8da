// SPDX-License-Identifier: BSD-3-Clause
// Which copies end before others begin, as far as their lines state it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace reshard {

class CopyOrder {
 public:
  // Makes each line begin when all lines before it are done. By default only what `add` states
  // counts.
  void set_by_lines() { by_lines_ = true; }

  // Adds a line with this id ("": none) that begins when the lines with the ids `after` are done.
  // Lines must be added in ascending order. Throws InputError if the id is taken, or if no earlier
  // line has an id of `after`.
  void add(std::int64_t line, std::string_view id, const std::vector<std::string>& after);
  // Whether `line` is done before `other` begins. Throws InputError if finding out takes too long.
  bool is_before(std::int64_t line, std::int64_t other);

 private:
  bool by_lines_ = false;
  std::unordered_map<std::string, std::int64_t> line_of_;
  std::unordered_map<std::int64_t, std::vector<std::int64_t>>
      after_;  // by line: the lines that it comes after
  std::int64_t budget_ = std::int64_t{1} << 26;
};

}  // namespace reshard
