// SPDX-License-Identifier: BSD-3-Clause
// Element arithmetic of the store: rows of operands folded from the left, rounded to the dtype
// after every operation, then divided once.
//
// f16 and bf16 are computed in f32 and rounded after each operation, which gives the correctly
// rounded result of the 16-bit operation (24 >= 2 * 11 + 2 bits). Integers wrap around. min and max
// propagate NaN and keep the left operand of equals. bool: min is and, max is or. c64 products are
// (ac - bd, ad + bc), each operation rounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/dtype.h"

namespace reshard {

// Whether fold_row can do this: can_reduce without Avg (plans fold avg as sum with a divisor), and
// a divisor other than 1 only where can_divide.
bool can_fold(ReduceOp op, DType dtype, std::int64_t divisor);

// out[i] = ((operand 0 [i] op operand 1 [i]) op ...) / divisor for i < count. All rows are dense
// and aligned to the element; `out` overlaps no operand. At least one operand. Throws CheckFailure
// unless can_fold.
void fold_row(ReduceOp op, DType dtype, std::int64_t divisor,
              std::span<const std::byte* const> operands, std::byte* out, std::int64_t count);

}  // namespace reshard
