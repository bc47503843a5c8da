// SPDX-License-Identifier: BSD-3-Clause
// as_strided on a tensor that lies in order: which dim of the tensor each of its result is.
#pragma once

#include <vector>

#include "core/layout/box.h"
#include "core/ops/attributes.h"

namespace reshard {

// PyTorch takes no others than permutations, and those only where size and stride of every dim are
// those of one dim of the tensor. Throws InputError for all else.
std::vector<int> strided_order(const Shape& shape, const OpAttributes& attributes);

}  // namespace reshard
