// SPDX-License-Identifier: BSD-3-Clause
// The smallest of many times that change often: a tree of minima with 64 children per node.
//
// A heap would pay a logarithm for each of the thousands of finish times that one fair-share
// solution moves. Here setting a value costs a store and at most a mark on its block; blocks whose
// minimum may have risen are read again once, when the minimum is asked for. Every entry equal to
// the minimum is found by walking down.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace reshard::sim {

class MinimumTree {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  // Entries are kNever until set; any index may be set.
  void set(std::int32_t index, std::int64_t value);
  std::int64_t at(std::int32_t index) const {
    return levels_[0].values[static_cast<std::size_t>(index)];
  }
  // kNever where there is none.
  std::int64_t minimum();
  // Indices whose value equals the minimum, ascending, appended to `out`; none when it is kNever.
  void find_minimum(std::vector<std::int32_t>& out);

 private:
  static constexpr std::size_t kFan = 64;
  struct Level {
    std::vector<std::int64_t> values;    // a multiple of kFan
    std::vector<std::uint8_t> outdated;  // the true minimum may be larger: read the children again
    std::vector<std::size_t> marked;     // which are outdated
  };
  void grow(std::size_t entries);
  void pass_up(std::size_t level, std::size_t index, std::int64_t value, std::int64_t old_value);

  std::vector<Level> levels_ = std::vector<Level>(
      1);  // 0: the entries; each next one the minima of blocks of the one before
};

}  // namespace reshard::sim
