// SPDX-License-Identifier: BSD-3-Clause
// Numbers that are given to ranks in turn where each rank should have a range, or the reverse.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace reshard {

// The numbers 0 to count-1 given to n ranks in turn, in the order of memory over all ranks.
inline std::vector<std::int64_t> in_turn(std::int64_t count, std::int64_t n) {
  std::vector<std::int64_t> out;
  for (std::int64_t rank = 0; rank < n; ++rank)
    for (std::int64_t i = rank; i < count; i += n) out.push_back(i);
  return out;
}

// By number that gets the wrong tensor: the numbers of what arrives for it.
using Arrivals = std::map<std::int64_t, std::set<std::int64_t>>;

// "given to 4 ranks in turn, where each has a range" (or the reverse), if that explains all
// arrivals, and each number that it would exchange is among them.
inline std::optional<std::string> dealt_otherwise(const Arrivals& arrivals, std::int64_t count,
                                                  std::int64_t n) {
  if (n < 2 || n >= count) return std::nullopt;
  std::vector<std::int64_t> turn = in_turn(count, n), back(turn.size());
  std::int64_t moved = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    back[static_cast<std::size_t>(turn[static_cast<std::size_t>(i)])] = i;
    moved += turn[static_cast<std::size_t>(i)] == i ? 0 : 1;
  }
  if (static_cast<std::int64_t>(arrivals.size()) != moved) return std::nullopt;
  bool turns = true, ranges = true;
  for (const auto& [wanted, got] : arrivals) {
    if (wanted < 0 || wanted >= count || got.size() != 1) return std::nullopt;
    turns = turns && turn[static_cast<std::size_t>(wanted)] == *got.begin();
    ranges = ranges && back[static_cast<std::size_t>(wanted)] == *got.begin();
  }
  if (!turns && !ranges) return std::nullopt;
  return "given to " + std::to_string(n) +
         (turns ? " ranks in turn, where each has a range"
                : " ranks in ranges, where each has every so many");
}

}  // namespace reshard
