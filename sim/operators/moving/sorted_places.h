// SPDX-License-Identifier: BSD-3-Clause
// The order of a slice's elements. As in PyTorch, NaN is larger than all numbers, and sorting is
// stable.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "core/base/integers.h"
#include "sim/operators/pointwise/arithmetic.h"

namespace reshard::sim {

template <class T>
bool before(T a, T b) {
  return arithmetic::is_nan(b) ? !arithmetic::is_nan(a) : a < b;
}

// The indices of a slice's elements in sorted order.
template <class T>
std::vector<std::int64_t> sorted_places(std::span<const T> slice, bool descending) {
  std::vector<std::int64_t> places(slice.size());
  std::iota(places.begin(), places.end(), std::int64_t{0});
  std::stable_sort(places.begin(), places.end(), [&](std::int64_t a, std::int64_t b) {
    T x = slice[to_index(a)], y = slice[to_index(b)];
    return descending ? before(y, x) : before(x, y);
  });
  return places;
}

}  // namespace reshard::sim
