// SPDX-License-Identifier: BSD-3-Clause
// The values of a whole tensor, or of a tensor's shard on one rank: dense, row-major.
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

// Elements by dtype: f32, bf16, f16, f8 and both parts of c64 as float (the narrower ones rounded
// to their precision), f64 as double, integers and bool as int64_t (wrapped to their width, bool 0
// or 1).
using Elements = std::variant<std::vector<float>, std::vector<double>, std::vector<std::int64_t>>;

// The number of elements. Throws InputError for negative extents and for more than 2^28 elements,
// where an extent of 0 counts as 1, so that strides and numbers of slices have the same limit.
std::int64_t computable_count(const Shape& shape);

struct Array {
  DType dtype = DType::F32;
  Shape shape;
  Elements elements = std::vector<float>{};

  // Zeros; c64 has two elements per number. Throws InputError like computable_count(), and for a
  // dtype that operators do not compute with.
  static Array zeros(DType dtype, const Shape& shape);
  // Rounds or wraps the values to the dtype.
  static Array of(DType dtype, const Shape& shape, const std::vector<double>& values);
  static Array of(DType dtype, const Shape& shape, std::vector<std::int64_t> values);
  std::int64_t count() const { return element_count(shape); }
  friend bool operator==(const Array&, const Array&) = default;
};

// Whether the dtype's elements are float or double: f64, f32, f16, bf16, f8.
bool is_real(DType dtype);

// Rounds or wraps every element to what its dtype can hold.
void round_to_dtype(Array& array);
// Casts like PyTorch: floats to integers by truncation, anything to bool by != 0.
Array cast(const Array& array, DType dtype);

// The elements in the type that operators compute in: double for floating dtypes, with one rounding
// of the result, and int64_t for integers and bool. Converts floats to integers like cast().
template <class T>
std::vector<T> values(const Array& array);
template <>
std::vector<double> values(const Array& array);
template <>
std::vector<std::int64_t> values(const Array& array);

// Converts a number to T like cast().
template <class T>
T number_as(double number) {
  if constexpr (std::is_integral_v<T>)
    return values<T>(Array::of(DType::F64, Shape{}, std::vector<double>{number}))[0];
  else
    return number;
}

// One tensor argument of an operator, or a list of tensors; null for an absent one.
struct ArrayArgument {
  bool is_list = false;
  std::vector<const Array*> arrays;
};

// Calls visit(T{}) with the type that the dtype computes in: double or int64_t.
template <class Visit>
decltype(auto) visit_computing(DType dtype, Visit&& visit) {
  return is_real(dtype) ? visit(double{}) : visit(std::int64_t{});
}

}  // namespace reshard::sim
