// SPDX-License-Identifier: BSD-3-Clause
// Views boxes of dense row-major arrays as rows of bytes, and copies one box to another at near
// memory speed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/layout/box.h"

namespace reshard {

// The place of a box: at `lo` in an array of `shape`. Its extents are given separately.
struct BoxPlace {
  const Shape& shape;
  const DimVector& lo;
};

// The places of several boxes of equal extents, each in its own array, reduced to as few dims as
// possible: extents of 1 are dropped and dims that are contiguous in all arrays are joined. The
// innermost dim is the row, dense in every array. `Offsets` is an array or vector of int64 with one
// entry per place.
template <class Offsets>
struct BoxRows {
  struct Dim {
    std::int64_t extent;
    Offsets stride;  // bytes
  };
  Offsets start;                    // bytes from the beginning of each array to the box
  std::array<Dim, kMaxDims> outer;  // innermost first
  int outer_dims = 0;
  std::int64_t row_bytes = 0;

  // `zero` has one 0 per place. Extents > 0, and every box is inside its array.
  BoxRows(const Offsets& zero, std::span<const BoxPlace> places, const DimVector& extents,
          std::int64_t element_bytes)
      : start(zero) {
    row_bytes = element_bytes;
    Offsets stride = zero;
    for (auto& bytes : stride) bytes = element_bytes;
    for (int d = extents.size() - 1; d >= 0; --d) {
      for (std::size_t i = 0; i < places.size(); ++i) start[i] += places[i].lo[d] * stride[i];
      if (extents[d] > 1) add(extents[d], stride);
      for (std::size_t i = 0; i < places.size(); ++i) stride[i] *= places[i].shape[d];
    }
  }

  // Calls row(offsets) for every row in row-major order, with offsets in bytes per array; outer
  // dims below `from` are left to the caller.
  template <class Row>
  void for_each(int from, Row&& row) const {
    Offsets at = start;
    std::array<std::int64_t, kMaxDims> index{};
    while (true) {
      row(at);
      int d = from;
      for (; d < outer_dims; ++d) {
        const Dim& dim = outer[static_cast<std::size_t>(d)];
        bool more = ++index[static_cast<std::size_t>(d)] < dim.extent;
        std::int64_t steps = more ? 1 : 1 - dim.extent;
        for (std::size_t i = 0; i < at.size(); ++i) at[i] += steps * dim.stride[i];
        if (more) break;
        index[static_cast<std::size_t>(d)] = 0;
      }
      if (d == outer_dims) return;
    }
  }

 private:
  // Adds the next outer dim; merges it into the one inside it if both are contiguous in all arrays.
  void add(std::int64_t extent, const Offsets& stride) {
    bool joins = true;
    for (std::size_t i = 0; i < stride.size(); ++i) {
      if (outer_dims == 0) {
        joins = joins && stride[i] == row_bytes;
      } else {
        const Dim& last = outer[static_cast<std::size_t>(outer_dims - 1)];
        joins = joins && stride[i] == last.extent * last.stride[i];
      }
    }
    if (!joins)
      outer[static_cast<std::size_t>(outer_dims++)] = {extent, stride};
    else if (outer_dims == 0)
      row_bytes *= extent;
    else
      outer[static_cast<std::size_t>(outer_dims - 1)].extent *= extent;
  }
};

// The offset of the box in elements, if it is contiguous in an array of `shape`. Extents > 0.
std::optional<std::int64_t> stretch_of(const Shape& shape, const DimVector& lo,
                                       const DimVector& extents);

// Copies the box of `source` to the box of `destination`. The arrays do not overlap; extents > 0.
void copy_box(std::byte* destination, const BoxPlace& destination_place, const std::byte* source,
              const BoxPlace& source_place, const DimVector& extents, std::int64_t element_bytes);

// Sets the box to zero bytes; extents > 0.
void clear_box(std::byte* destination, const BoxPlace& place, const DimVector& extents,
               std::int64_t element_bytes);

}  // namespace reshard
