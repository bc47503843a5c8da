// SPDX-License-Identifier: BSD-3-Clause
// Numbers 0 to n - 1 in sets that are joined (union-find). A set is known by its least number.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace reshard {

class DisjointSets {
 public:
  explicit DisjointSets(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }

  std::size_t size() const { return parent_.size(); }
  // The least number of the set that has `i`.
  std::size_t first(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  // Makes the sets of both one; returns its first.
  std::size_t join(std::size_t a, std::size_t b) {
    a = first(a), b = first(b);
    return parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> parent_;
};

}  // namespace reshard
