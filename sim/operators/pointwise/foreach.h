// SPDX-License-Identifier: BSD-3-Clause
// Operators over lists of tensors: applies the operator at every position.
#pragma once

#include <functional>
#include <string_view>

#include "sim/operators/operator_row.h"

namespace reshard::sim {

// The operator that "_foreach_NAME" applies: "linalg_vector_norm" for "norm"; for most it is NAME.
std::string_view foreach_base(std::string_view name);

// Calls `run` for every position: with that element of each list, and with every single tensor.
// Scalars, or the element of a list of scalars, are passed by their name in the plain operator.
ArrayResults for_each_position(const LocalCall& call,
                               const std::function<ArrayResults(const LocalCall&)>& run);

}  // namespace reshard::sim
