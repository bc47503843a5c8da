// SPDX-License-Identifier: BSD-3-Clause
// Which copies are done before others begin, from what their lines state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace reshard {

class CopyOrder {
 public:
  // Each line begins when all lines before it are done. Otherwise only what `add` states counts.
  void set_by_lines() { by_lines_ = true; }

  // A line with this id ("": none) that begins when the lines with the ids `after` are done. Throws
  // InputError for an id that is taken, and for one in `after` of no earlier line. Lines ascend.
  void add(std::int64_t line, std::string_view id, const std::vector<std::string>& after);
  // Whether `line` is done before `other` begins. Throws InputError if that takes too long.
  bool is_before(std::int64_t line, std::int64_t other);

 private:
  bool by_lines_ = false;
  std::unordered_map<std::string, std::int64_t> line_of_;
  std::unordered_map<std::int64_t, std::vector<std::int64_t>> after_;  // by line, lines
  std::int64_t budget_ = std::int64_t{1} << 26;
};

}  // namespace reshard
