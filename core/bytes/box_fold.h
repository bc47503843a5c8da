// SPDX-License-Identifier: BSD-3-Clause
// A box that becomes the fold of other boxes of the same extents, each in a dense row-major array
// of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/dtype.h"
#include "core/layout/box.h"

namespace reshard {

class BoxFold {
 public:
  // The box at `lo` of an array of `shape`; extents > 0.
  BoxFold(std::byte* destination, const Shape& shape, const DimVector& lo, const DimVector& extents)
      : destination_(destination), extents_(extents) {
    places_.push_back({shape, lo});
  }
  // Operands are folded in the order in which they are added; none overlaps the destination.
  void add_operand(const std::byte* data, const Shape& shape, const DimVector& lo) {
    operands_.push_back(data);
    places_.push_back({shape, lo});
  }
  // fold_row for every row. May run again.
  void run(ReduceOp op, DType dtype, std::int64_t divisor) const;

 private:
  struct Place {
    Shape shape;
    DimVector lo;
  };
  std::byte* destination_;
  DimVector extents_;
  std::vector<const std::byte*> operands_;
  std::vector<Place> places_;  // of the destination, then of the operands
};

}  // namespace reshard
