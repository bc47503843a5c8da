// SPDX-License-Identifier: BSD-3-Clause
// Operators over lists of tensors: the operator on every position.
#pragma once

#include <functional>
#include <string_view>

#include "sim/operators/operator_row.h"

namespace reshard::sim {

// The operator that "_foreach_NAME" does, from NAME: "norm" is "linalg_vector_norm", most are
// themselves.
std::string_view foreach_base(std::string_view name);

// Lists of the call give their positions one by one, single tensors go to every one; so do lists of
// scalars, under the name that the scalar operator knows them by.
ArrayResults for_each_position(const LocalCall& call,
                               const std::function<ArrayResults(const LocalCall&)>& run);

}  // namespace reshard::sim
