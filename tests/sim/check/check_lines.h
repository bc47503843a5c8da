// SPDX-License-Identifier: BSD-3-Clause
// Files of copies, from lines of JSON with quotes of the other kind.
#pragma once

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "sim/check/check_file.h"
#include "tests/support/drawn_models.h"

namespace reshard::test {

using Numbers = std::vector<std::int64_t>;

inline sim::CheckedCopies read(const std::vector<std::string>& lines) {
  std::string text = "{'reshard_check': 1}\n";
  for (const std::string& line : lines) text += line + "\n";
  std::replace(text.begin(), text.end(), '\'', '"');
  std::istringstream in(text);
  return sim::check_copies(in, "t.copies");
}

inline Numbers numbers_of(const Stored& side, int rank, std::string_view name) {
  auto id = side.find(Rank{rank}, name);
  REQUIRE(id);
  return element_numbers(side)[to_index(*id)];
}

// Rows of `width` elements that begin with these.
inline Numbers rows(const Numbers& begins, int width) {
  Numbers out;
  for (std::int64_t begin : begins)
    for (int i = 0; i < width; ++i) out.push_back(begin < 0 ? -1 : begin + i);
  return out;
}

inline const std::vector<std::string> kHeads = {
    "{'tensor': 'q', 'shape': [8, 3], 'dtype': 'bf16'}",
    "{'tensor': 'k', 'shape': [4, 3], 'dtype': 'bf16'}",
    "{'tensor': 'v', 'shape': [4, 3], 'dtype': 'bf16'}"};

inline std::vector<std::string> with(std::vector<std::string> lines, const std::string& line) {
  lines.push_back(line);
  return lines;
}

inline void check_refused(const std::vector<std::string>& lines, const std::string& what) {
  CAPTURE(lines.back());
  CHECK_THROWS_WITH(read(lines), Catch::Contains("t.copies:" + std::to_string(lines.size() + 1)) &&
                                     Catch::Contains(what));
}

}  // namespace reshard::test
