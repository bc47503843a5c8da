// SPDX-License-Identifier: BSD-3-Clause
// Union-find over the numbers 0 to n - 1. Each set is identified by its smallest number.
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
  // The smallest number of the set that contains `i`.
  std::size_t first(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  // Merges the sets of `a` and `b`; returns the smallest number of the result.
  std::size_t join(std::size_t a, std::size_t b) {
    a = first(a), b = first(b);
    return parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> parent_;
};

}  // namespace reshard
