// SPDX-License-Identifier: BSD-3-Clause
// The operators, one row each, in the parts in which they are written (catalogue_*.cpp); the rows'
// form is in operator.h. NAMES is a list of forms that have all else in common, `NAME>` one that
// writes to tensors given as out=, which come after the others. A tensor is `name`, `name?` where
// it may be absent, `name[]` a list.
#pragma once

#include <array>
#include <string_view>

namespace reshard {

std::array<std::string_view, 5> catalogue();

extern const std::string_view kPointwiseOperators, kListOperators, kTensorOperators,
    kShapeOperators, kImageOperators;

}  // namespace reshard
