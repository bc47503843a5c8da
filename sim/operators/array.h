// SPDX-License-Identifier: BSD-3-Clause
// A tensor's values on one rank, or a whole tensor's: dense, row-major.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/ids.h"
#include "core/layout/box.h"

namespace reshard::sim {

// Elements by dtype: f32, bf16, f16, f8 as float (all but the first rounded to what they can hold),
// f64 as double, integers and bool as int64_t (wrapped to their width, bool 0 or 1).
using Elements = std::variant<std::vector<float>, std::vector<double>, std::vector<std::int64_t>>;

// How many elements there are. Throws InputError for negative extents and for more than 2^28, an
// extent of 0 counted as 1, so that no stride and no number of slices is above that either.
std::int64_t computable_count(const Shape& shape);

struct Array {
  DType dtype = DType::F32;
  Shape shape;
  Elements elements = std::vector<float>{};

  // Zeros; of c64 two elements a number. Throws InputError as computable_count() does.
  static Array zeros(DType dtype, const Shape& shape);
  // Elements are rounded or wrapped to the dtype.
  static Array of(DType dtype, const Shape& shape, const std::vector<double>& values);
  static Array of(DType dtype, const Shape& shape, std::vector<std::int64_t> values);
  std::int64_t count() const { return element_count(shape); }
  friend bool operator==(const Array&, const Array&) = default;
};

// Whether the dtype's elements are float or double: f64, f32, f16, bf16, f8.
bool is_real(DType dtype);

// Rounds or wraps every element to what its dtype can hold.
void round_to_dtype(Array& array);
// As a cast of PyTorch: towards zero to integers, != 0 to bool.
Array cast(const Array& array, DType dtype);

// What operators compute in: double for all floating dtypes, whose results are rounded once, and
// int64_t for integers and bool. Integers are read from floats as cast() does.
template <class T>
std::vector<T> values(const Array& array);
template <>
std::vector<double> values(const Array& array);
template <>
std::vector<std::int64_t> values(const Array& array);

// The number as T, as cast() does.
template <class T>
T number_as(double number) {
  if constexpr (std::is_integral_v<T>)
    return values<T>(Array::of(DType::F64, Shape{}, std::vector<double>{number}))[0];
  else
    return number;
}

// One tensor argument of an operator, or a list of them; null where there is none.
struct ArrayArgument {
  bool is_list = false;
  std::vector<const Array*> arrays;
};

// Calls visit(T{}) with T double or int64_t, as the dtype computes.
template <class Visit>
decltype(auto) visit_computing(DType dtype, Visit&& visit) {
  return is_real(dtype) ? visit(double{}) : visit(std::int64_t{});
}

}  // namespace reshard::sim
