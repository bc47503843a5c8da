// SPDX-License-Identifier: BSD-3-Clause
// What the tensors that a trace declares hold on every rank.
#pragma once

#include "sim/dispatch/sharded.h"
#include "sim/trace/operator_line.h"

namespace reshard::sim {

// Of floating dtypes numbers from -2 to 2 in odd multiples of 1/64, which bf16 holds, so that
// nothing is divided by zero; integers from -8 to 8, or what `below` says; or `value` everywhere.
// Addends of a partial tensor differ: of a sum one is odd, so that the sum is not zero; of a
// `value` that is summed each has its share; of what has a `below` the first has all.
Sharded declared(const OperatorLine& line);

}  // namespace reshard::sim
