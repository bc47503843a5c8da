// SPDX-License-Identifier: BSD-3-Clause
// Operators on complex numbers, computed on real and imaginary parts. An array of c64 has two
// elements per number, the real part first: the same bytes as an array of f32 with one more dim, of
// length 2.
#pragma once

#include <string_view>
#include <vector>

#include "core/ops/call.h"
#include "sim/operators/array.h"
#include "sim/operators/operators.h"

namespace reshard::sim {

// Between complex numbers and pairs of f32. as_pairs() returns other dtypes unchanged.
TensorMeta as_pairs(const TensorMeta& meta);
Array as_pairs(Array array);
Array as_complex(Array pairs);

// Whether a call takes or produces complex numbers.
bool is_complex(std::string_view name, const std::vector<ArrayArgument>& arguments);
// Throws NotComputed for operators that are not implemented for complex numbers.
ArrayResults compute_complex(std::string_view name, const std::vector<ArrayArgument>& arguments,
                             const OpAttributes& attributes, const RandomStream& random);

}  // namespace reshard::sim
