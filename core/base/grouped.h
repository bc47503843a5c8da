// SPDX-License-Identifier: BSD-3-Clause
// Items grouped by key 0 .. n-1 (an id or an integer) in one array, counted first, then placed.
// Items of a group keep the order in which they were given.
#pragma once

#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "core/base/ids.h"

namespace reshard {

template <class Item>
class Grouped {
 public:
  Grouped() = default;
  // `each` is called twice with a function put(key, item) and must pass it the same items both
  // times.
  template <class Each>
  Grouped(std::size_t keys, Each&& each) : begin_(keys + 1, 0) {
    each([this](IndexLike auto key, const Item&) { ++begin_[to_index(key) + 1]; });
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    items_.resize(begin_.back());
    std::vector<std::size_t> next = begin_;
    each([this, &next](IndexLike auto key, const Item& item) {
      items_[next[to_index(key)]++] = item;
    });
  }

  // All items, group by group.
  const std::vector<Item>& all() const { return items_; }
  std::span<const Item> operator[](IndexLike auto key) const {
    std::size_t at = to_index(key);
    return {items_.data() + begin_[at], begin_[at + 1] - begin_[at]};
  }

 private:
  std::vector<std::size_t> begin_{0};
  std::vector<Item> items_;
};

}  // namespace reshard
