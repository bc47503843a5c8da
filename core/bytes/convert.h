// SPDX-License-Identifier: BSD-3-Clause
// Converts elements between floating-point dtypes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"

namespace reshard {

// out[i] = in[i] in the other dtype, for i < count, both dense and of any alignment. Rounds to
// nearest, ties to even, by way of f32 as PyTorch does. Values beyond the largest finite one become
// infinity, or NaN in f8e4m3, which has no infinity. Both dtypes must be floating.
void convert_row(DType from, const std::byte* in, DType to, std::byte* out, std::int64_t count);

}  // namespace reshard
