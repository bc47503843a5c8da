// SPDX-License-Identifier: BSD-3-Clause
// How a lane walks through a tile.
//
// Lanes are interleaved: lane i takes units i, i + lanes, i + 2 lanes ... of the tile, so that a
// warp reads and writes whole lines. Pointers advance by constants computed once per thread; the
// inner loop neither divides nor multiplies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/bytes/element_ops.h"

#if defined(__CUDACC__)
#define RESHARD_UNROLL _Pragma("unroll")
#else
#define RESHARD_UNROLL
#endif

namespace reshard::backends::kernels {

// Aligned loads and stores of any type from bytes.
template <class T>
RESHARD_ON_DEVICE T load(const std::byte* at) {
  T value;
  std::memcpy(static_cast<void*>(&value), __builtin_assume_aligned(at, alignof(T)), sizeof value);
  return value;
}
template <class T>
RESHARD_ON_DEVICE void store(std::byte* at, const T& value) {
  std::memcpy(__builtin_assume_aligned(at, alignof(T)), static_cast<const void*>(&value),
              sizeof value);
}

// A lane's path through the rows of a tile, `lanes` units at a time.
class Walk {
 public:
  RESHARD_ON_DEVICE Walk(std::int32_t units, std::int32_t lanes, std::int32_t lane)
      : units_(units) {
    // In a tile with long rows a lane stays in one row for a while, and starts in the first.
    bool long_rows = units > lanes;
    row_ = long_rows ? 0 : lane / units;
    column_ = long_rows ? lane : lane % units;
    row_step_ = long_rows ? 0 : lanes / units;
    column_step_ = long_rows ? lanes : lanes % units;
  }
  RESHARD_ON_DEVICE std::int64_t start(std::int64_t pitch, int unit_bytes) const {
    return row_ * pitch + std::int64_t{column_} * unit_bytes;
  }
  RESHARD_ON_DEVICE std::int64_t step(std::int64_t pitch, int unit_bytes) const {
    return row_step_ * pitch + std::int64_t{column_step_} * unit_bytes;
  }
  // What to add to a pointer when the column wraps around.
  RESHARD_ON_DEVICE std::int64_t wrap(std::int64_t pitch, int unit_bytes) const {
    return pitch - std::int64_t{units_} * unit_bytes;
  }
  RESHARD_ON_DEVICE std::int32_t row() const { return row_; }
  RESHARD_ON_DEVICE std::int32_t column() const { return column_; }
  RESHARD_ON_DEVICE std::int32_t row_step() const { return row_step_; }
  // Takes one step; returns whether the column wrapped around.
  RESHARD_ON_DEVICE bool advance() {
    column_ += column_step_;
    bool wraps = column_ >= units_;
    if (wraps) column_ -= units_;
    return wraps;
  }

 private:
  std::int32_t units_, row_, column_, row_step_, column_step_;
};

// A pointer that follows a Walk.
template <class Byte>
struct Track {
  Byte* at;
  std::int64_t step, wrap;
  RESHARD_ON_DEVICE Track(Byte* from, std::int64_t pitch, int unit_bytes, const Walk& walk)
      : at(from + walk.start(pitch, unit_bytes)),
        step(walk.step(pitch, unit_bytes)),
        wrap(walk.wrap(pitch, unit_bytes)) {}
  RESHARD_ON_DEVICE void advance(bool wraps) { at += step + (wraps ? wrap : 0); }
};

inline constexpr int kUnroll = 4;

}  // namespace reshard::backends::kernels
