// SPDX-License-Identifier: BSD-3-Clause
// A tensor's values on one rank, or a whole tensor's: dense, row-major.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "core/base/dtype.h"
#include "core/layout/box.h"

namespace reshard::sim {

// Elements by dtype: f32, bf16, f16 as float (the latter two rounded to what they can hold), f64 as
// double, integers and bool as int64_t (wrapped to their width, bool 0 or 1).
using Elements = std::variant<std::vector<float>, std::vector<double>, std::vector<std::int64_t>>;

struct Array {
  DType dtype = DType::F32;
  Shape shape;
  Elements elements;

  // Zeros.
  static Array zeros(DType dtype, const Shape& shape);
  std::int64_t count() const { return element_count(shape); }
};

// Rounds or wraps every element to what its dtype can hold.
void round_to_dtype(Array& array);
// As a cast of PyTorch: towards zero to integers, != 0 to bool.
Array cast(const Array& array, DType dtype);

// One tensor argument of an operator, or a list of them.
struct ArrayArgument {
  bool is_list = false;
  std::vector<std::optional<Array>> arrays;
};

}  // namespace reshard::sim
