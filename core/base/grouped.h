// SPDX-License-Identifier: BSD-3-Clause
// Items grouped by a key 0 .. n-1, all in one array: counted first, then placed. Within a group
// they keep the order in which they came.
#pragma once

#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

namespace reshard {

template <class Item>
class Grouped {
 public:
  Grouped() = default;
  // `each` is called twice with a function put(key, item), to which it gives the same both times.
  template <class Each>
  Grouped(std::size_t keys, Each&& each) : begin_(keys + 1, 0) {
    each([this](std::size_t key, const Item&) { ++begin_[key + 1]; });
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    items_.resize(begin_.back());
    std::vector<std::size_t> next = begin_;
    each([this, &next](std::size_t key, const Item& item) { items_[next[key]++] = item; });
  }

  // Group after group.
  const std::vector<Item>& all() const { return items_; }
  std::span<const Item> operator[](std::size_t key) const {
    return std::span(items_).subspan(begin_[key], begin_[key + 1] - begin_[key]);
  }

 private:
  std::vector<std::size_t> begin_{0};
  std::vector<Item> items_;
};

}  // namespace reshard
