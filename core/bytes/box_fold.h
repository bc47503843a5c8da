// SPDX-License-Identifier: BSD-3-Clause
// Element arithmetic in memory: folds rows of operands from the left, rounding to the dtype after
// every operation, then divides once.
//
// f16 and bf16 are computed in f32 and rounded after each operation, which gives the correctly
// rounded result of the 16-bit operation (24 >= 2 * 11 + 2 bits). Integers wrap around. min and max
// propagate NaN and keep the left one of equal operands. bool: min is and, max is or. c64 products
// are (ac - bd, ad + bc), with each operation rounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/dtype.h"
#include "core/layout/box.h"

namespace reshard {

// Whether fold_row supports this: can_reduce except for Avg (plans fold avg as sum with a divisor),
// and a divisor other than 1 only if can_divide.
bool can_fold(ReduceOp op, DType dtype, std::int64_t divisor);

// out[i] = ((operand 0 [i] op operand 1 [i]) op ...) / divisor for i < count. All rows are dense
// and aligned to the element; `out` overlaps no operand. At least one operand. Throws CheckFailure
// unless can_fold.
void fold_row(ReduceOp op, DType dtype, std::int64_t divisor,
              std::span<const std::byte* const> operands, std::byte* out, std::int64_t count);

// A box that becomes the fold of other boxes of the same extents; each box is in its own dense
// row-major array.
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
  // Calls fold_row for every row. Can run again.
  void run(ReduceOp op, DType dtype, std::int64_t divisor) const;

 private:
  struct BoxOrigin {
    Shape shape;
    DimVector lo;
  };
  std::byte* destination_;
  DimVector extents_;
  std::vector<const std::byte*> operands_;
  std::vector<BoxOrigin> places_;  // of the destination, then of the operands
};

}  // namespace reshard
