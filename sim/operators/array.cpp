// SPDX-License-Identifier: BSD-3-Clause
#include "sim/operators/array.h"

#include <fmt/core.h>

#include <Eigen/Core>
#include <cmath>
#include <limits>
#include <string>

#include "core/base/errors.h"
#include "sim/operators/float8.h"

namespace reshard::sim {
namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 28;

float rounded(float value, DType dtype) {
  if (dtype == DType::BF16) return static_cast<float>(Eigen::bfloat16(value));
  if (dtype == DType::F16) return static_cast<float>(Eigen::half(value));
  if (dtype == DType::F8E4M3) return static_cast<float>(static_cast<double>(Float8<3>(value)));
  if (dtype == DType::F8E5M2) return static_cast<float>(static_cast<double>(Float8<2>(value)));
  return value;
}

std::int64_t wrapped(std::int64_t value, DType dtype) {
  switch (dtype) {
    case DType::I32:
      return static_cast<std::int32_t>(value);
    case DType::I16:
      return static_cast<std::int16_t>(value);
    case DType::I8:
      return static_cast<std::int8_t>(value);
    case DType::U8:
      return static_cast<std::uint8_t>(value);
    case DType::Bool:
      return value != 0;
    default:
      return value;
  }
}

// As on x86: values beyond int64_t become its minimum.
std::int64_t truncated(double value) {
  constexpr double kLimit = 9223372036854775808.0;
  return value >= -kLimit && value < kLimit ? static_cast<std::int64_t>(value)
                                            : std::numeric_limits<std::int64_t>::min();
}

}  // namespace

std::int64_t computable_count(const Shape& shape) {
  std::int64_t others = 1;
  for (std::int64_t extent : shape) {
    if (extent < 0)
      throw InputError(fmt::format("shape: expected no negative sizes, found {}", text(shape)));
    if (extent > kMaxElements / others)
      throw InputError(fmt::format(
          "shape: expected at most 2^28 elements to compute with, found {}", text(shape)));
    if (extent > 0) others *= extent;
  }
  return element_count(shape);
}

bool is_real(DType dtype) { return is_floating(dtype); }

Array Array::zeros(DType dtype, const Shape& shape) {
  if (dtype == DType::C64)
    return {dtype, shape, std::vector<float>(2 * to_index(computable_count(shape)))};
  if (!is_real(dtype) && !is_integer(dtype) && dtype != DType::Bool)
    throw InputError(
        fmt::format("dtype: expected one that operators compute with, found {}", text(dtype)));
  std::size_t count = to_index(computable_count(shape));
  Array out{dtype, shape, {}};
  if (dtype == DType::F64) {
    out.elements = std::vector<double>(count);
  } else if (is_real(dtype)) {
    out.elements = std::vector<float>(count);
  } else {
    out.elements = std::vector<std::int64_t>(count);
  }
  return out;
}

Array Array::of(DType dtype, const Shape& shape, const std::vector<double>& values) {
  RESHARD_CHECK(static_cast<std::int64_t>(values.size()) == element_count(shape), text(shape));
  Array out = zeros(dtype, shape);
  std::visit(
      [&](auto& elements) {
        using T = typename std::decay_t<decltype(elements)>::value_type;
        for (std::size_t i = 0; i < values.size(); ++i) {
          if constexpr (std::is_integral_v<T>)
            elements[i] = dtype == DType::Bool ? values[i] != 0 : truncated(values[i]);
          else
            elements[i] = static_cast<T>(values[i]);
        }
      },
      out.elements);
  round_to_dtype(out);
  return out;
}

Array Array::of(DType dtype, const Shape& shape, std::vector<std::int64_t> values) {
  RESHARD_CHECK(static_cast<std::int64_t>(values.size()) == element_count(shape), text(shape));
  if (is_real(dtype)) return of(dtype, shape, std::vector<double>(values.begin(), values.end()));
  Array out = zeros(dtype, Shape{});
  out.shape = shape;
  out.elements = std::move(values);
  round_to_dtype(out);
  return out;
}

void round_to_dtype(Array& array) {
  DType dtype = array.dtype;
  if (dtype == DType::F32 || dtype == DType::F64 || dtype == DType::I64) return;
  if (auto* floats = std::get_if<std::vector<float>>(&array.elements)) {
    for (float& value : *floats) value = rounded(value, dtype);
  } else if (auto* integers = std::get_if<std::vector<std::int64_t>>(&array.elements)) {
    for (std::int64_t& value : *integers) value = wrapped(value, dtype);
  }
}

Array cast(const Array& array, DType dtype) {
  if (array.dtype == dtype) return array;
  return visit_computing(array.dtype, [&](auto t) {
    return Array::of(dtype, array.shape, values<decltype(t)>(array));
  });
}

template <>
std::vector<double> values(const Array& array) {
  return std::visit(
      [](const auto& elements) { return std::vector<double>(elements.begin(), elements.end()); },
      array.elements);
}

template <>
std::vector<std::int64_t> values(const Array& array) {
  return std::visit(
      [](const auto& elements) {
        std::vector<std::int64_t> out(elements.size());
        for (std::size_t i = 0; i < elements.size(); ++i) {
          if constexpr (std::is_integral_v<std::decay_t<decltype(elements[i])>>)
            out[i] = elements[i];
          else
            out[i] = truncated(static_cast<double>(elements[i]));
        }
        return out;
      },
      array.elements);
}

}  // namespace reshard::sim
