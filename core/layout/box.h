// SPDX-License-Identifier: BSD-3-Clause
// Half-open n-d boxes of element indices, 0 to 8 dims, without heap memory.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "core/base/integers.h"

namespace reshard {

// Up to kMaxDims integers, one per tensor dim: a shape, an offset or an extent. Unused entries stay
// 0, so that comparison can be defaulted.
class DimVector {
 public:
  constexpr DimVector() = default;
  constexpr explicit DimVector(int size) : size_(size) {}
  constexpr DimVector(int size, std::int64_t value) : size_(size) {
    for (int d = 0; d < size; ++d) values_[static_cast<std::size_t>(d)] = value;
  }
  constexpr DimVector(std::initializer_list<std::int64_t> values) {
    for (std::int64_t value : values) push_back(value);
  }

  constexpr int size() const { return size_; }
  constexpr void push_back(std::int64_t value) {
    values_[static_cast<std::size_t>(size_++)] = value;
  }
  constexpr std::int64_t operator[](int d) const { return values_[static_cast<std::size_t>(d)]; }
  constexpr std::int64_t& operator[](int d) { return values_[static_cast<std::size_t>(d)]; }
  constexpr std::span<const std::int64_t> span() const {
    return {values_.data(), static_cast<std::size_t>(size_)};
  }
  constexpr const std::int64_t* begin() const { return values_.data(); }
  constexpr const std::int64_t* end() const { return values_.data() + size_; }
  friend constexpr bool operator==(const DimVector&, const DimVector&) = default;
  friend constexpr auto operator<=>(const DimVector&, const DimVector&) = default;

 private:
  std::array<std::int64_t, kMaxDims> values_{};
  std::int32_t size_ = 0;
};

using Shape = DimVector;

// Product of the extents; 1 for 0 dims. 0 if any extent is 0, even if the product of the others
// would overflow.
constexpr std::int64_t element_count(const DimVector& extents) {
  for (std::int64_t extent : extents)
    if (extent == 0) return 0;
  std::int64_t count = 1;
  for (std::int64_t extent : extents) count *= extent;
  return count;
}

// "32,8192,4096"; "" for 0 dims.
std::string text(const DimVector& values);

// The index vector of the element with this row-major index, 0 <= index < element_count(shape).
DimVector index_at(std::int64_t index, const Shape& shape);

// Moves on to the next index in row-major order, where dim d has extent_of(d) >= 1 values; false
// after the last one, when all entries are 0 again.
template <class ExtentOf>
constexpr bool next_index(DimVector& at, ExtentOf&& extent_of) {
  for (int d = at.size() - 1; d >= 0; --d) {
    if (++at[d] < static_cast<std::int64_t>(extent_of(d))) return true;
    at[d] = 0;
  }
  return false;
}

// All indices i with lo <= i < hi in every dim. Empty if some hi <= lo; a box of 0 dims has one
// element.
struct Box {
  DimVector lo, hi;

  constexpr int dims() const { return lo.size(); }
  constexpr std::int64_t extent(int d) const { return hi[d] - lo[d]; }
  constexpr DimVector extents() const {
    DimVector out;
    for (int d = 0; d < dims(); ++d) out.push_back(extent(d));
    return out;
  }
  constexpr bool empty() const {
    for (int d = 0; d < dims(); ++d)
      if (hi[d] <= lo[d]) return true;
    return false;
  }
  constexpr std::int64_t volume() const {
    if (empty()) return 0;
    std::int64_t count = 1;
    for (int d = 0; d < dims(); ++d) count *= extent(d);
    return count;
  }
  friend constexpr bool operator==(const Box&, const Box&) = default;
  friend constexpr auto operator<=>(const Box&, const Box&) = default;
};

constexpr Box box_of(const Shape& shape) { return Box{DimVector(shape.size(), 0), shape}; }
constexpr Box box_at(const DimVector& lo, const DimVector& extents) {
  Box out{lo, lo};
  for (int d = 0; d < lo.size(); ++d) out.hi[d] += extents[d];
  return out;
}

// Intersects `box` with `other`; it can become empty.
constexpr void cut_to(Box& box, const Box& other) {
  for (int d = 0; d < box.dims(); ++d) {
    if (other.lo[d] > box.lo[d]) box.lo[d] = other.lo[d];
    if (other.hi[d] < box.hi[d]) box.hi[d] = other.hi[d];
  }
}
constexpr Box intersect(const Box& a, const Box& b) {
  Box out = a;
  cut_to(out, b);
  return out;
}

constexpr bool contains(const Box& outer, const Box& inner) {
  for (int d = 0; d < outer.dims(); ++d)
    if (inner.lo[d] < outer.lo[d] || inner.hi[d] > outer.hi[d]) return false;
  return true;
}

constexpr Box shifted(const Box& box, const DimVector& by) {
  Box out = box;
  for (int d = 0; d < box.dims(); ++d) {
    out.lo[d] += by[d];
    out.hi[d] += by[d];
  }
  return out;
}

// Takes `other` out of disjoint boxes: what is left of each, in at most 2 boxes per dim.
void subtract(const Box& other, std::vector<Box>& boxes);

// "[0:2,4:8]".
std::string text(const Box& box);

}  // namespace reshard
