// SPDX-License-Identifier: BSD-3-Clause
// The oracle's arithmetic. A float of any width is decoded to a long double (64 bits of
// significand, which hold the exact sum and product of two f32), the operation is done there, and
// the result is rounded to nearest even by hand. Only f64 uses the hardware's own operation.
#include <bit>
#include <cmath>
#include <stdexcept>

#include "tests/support/oracle.h"

namespace reshard::test {
namespace {

struct Format {
  int significand, exponent;  // bits of each field
};

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return {52, 11};
    case DType::F32:
    case DType::C64:
      return {23, 8};
    case DType::F16:
      return {10, 5};
    case DType::BF16:
      return {7, 8};
    default:
      throw std::logic_error("no float format");
  }
}

long double decoded(std::uint64_t bits, Format format) {
  std::uint64_t significand = bits & ((std::uint64_t{1} << format.significand) - 1);
  int exponent = static_cast<int>(bits >> format.significand & ((1u << format.exponent) - 1)),
      bias = (1 << (format.exponent - 1)) - 1;
  bool negative = (bits >> (format.significand + format.exponent) & 1) != 0;
  long double value;
  if (exponent == (1 << format.exponent) - 1)
    value = significand == 0 ? HUGE_VALL : std::nanl("");
  else if (exponent == 0)
    value = std::ldexp(static_cast<long double>(significand), 1 - bias - format.significand);
  else
    value =
        std::ldexp(static_cast<long double>(significand | std::uint64_t{1} << format.significand),
                   exponent - bias - format.significand);
  return negative ? -value : value;
}

std::uint64_t encoded(long double value, Format format) {
  int bias = (1 << (format.exponent - 1)) - 1;
  std::uint64_t top = std::uint64_t{1} << format.significand,
                sign = std::uint64_t{std::signbit(value)} << (format.significand + format.exponent);
  std::uint64_t infinity = ((std::uint64_t{1} << format.exponent) - 1) << format.significand;
  if (std::isnan(value)) return infinity | top >> 1;
  if (std::isinf(value)) return sign | infinity;
  if (value == 0) return sign;
  int exponent = 0;
  std::frexp(value, &exponent);  // |value| in [2^(exponent-1), 2^exponent)
  int unit = std::max(exponent - 1, 1 - bias) - format.significand;  // exponent of the last place
  // nearbyint rounds to nearest even, the mode in which every program starts.
  auto units = static_cast<std::uint64_t>(std::nearbyint(std::ldexp(std::fabs(value), -unit)));
  // A carry into the next power of two moves into the exponent field by itself.
  std::uint64_t field = static_cast<std::uint64_t>(unit + format.significand + bias - 1);
  std::uint64_t bits = (field << format.significand) + units;
  return sign | std::min(bits, infinity);
}

long double applied(ReduceOp op, long double a, long double b) {
  switch (op) {
    case ReduceOp::Sum:
      return a + b;
    case ReduceOp::Product:
      return a * b;
    case ReduceOp::Min:
    case ReduceOp::Max:
      if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
      return (op == ReduceOp::Min ? b < a : b > a) ? b : a;
    default:
      throw std::logic_error("not an operator of floats");
  }
}

std::uint64_t float_op(ReduceOp op, DType dtype, std::uint64_t a, std::uint64_t b) {
  if (dtype == DType::F64 && (op == ReduceOp::Sum || op == ReduceOp::Product)) {
    auto x = std::bit_cast<double>(a), y = std::bit_cast<double>(b);
    return std::bit_cast<std::uint64_t>(op == ReduceOp::Sum ? x + y : x * y);
  }
  Format format = format_of(dtype);
  return encoded(applied(op, decoded(a, format), decoded(b, format)), format);
}

std::uint64_t float_divided(DType dtype, std::uint64_t a, std::int64_t divisor) {
  if (dtype == DType::F64)
    return std::bit_cast<std::uint64_t>(std::bit_cast<double>(a) / static_cast<double>(divisor));
  Format format = format_of(dtype);
  return encoded(decoded(a, format) / static_cast<long double>(divisor), format);
}

std::uint64_t complex_op(ReduceOp op, std::uint64_t a, std::uint64_t b) {
  std::uint64_t ar = a & 0xffffffff, ai = a >> 32, br = b & 0xffffffff, bi = b >> 32;
  auto f32 = [](ReduceOp part, std::uint64_t x, std::uint64_t y) {
    return float_op(part, DType::F32, x, y);
  };
  auto minus = [](std::uint64_t x) { return x ^ 0x80000000u; };
  if (op == ReduceOp::Sum) return f32(op, ai, bi) << 32 | f32(op, ar, br);
  std::uint64_t real = f32(ReduceOp::Sum, f32(op, ar, br), minus(f32(op, ai, bi)));
  return f32(ReduceOp::Sum, f32(op, ar, bi), f32(op, ai, br)) << 32 | real;
}

std::int64_t widened(std::uint64_t bits, DType dtype) {
  switch (dtype) {
    case DType::I32:
      return static_cast<std::int32_t>(bits);
    case DType::I16:
      return static_cast<std::int16_t>(bits);
    case DType::I8:
      return static_cast<std::int8_t>(bits);
    default:
      return static_cast<std::int64_t>(bits);
  }
}

std::uint64_t integer_op(ReduceOp op, DType dtype, std::uint64_t a, std::uint64_t b) {
  std::uint64_t mask = ~std::uint64_t{0} >> (64 - 8 * size_bytes(dtype));
  switch (op) {
    case ReduceOp::Sum:
      return (a + b) & mask;
    case ReduceOp::Product:
      return (a * b) & mask;
    case ReduceOp::Min:
      return widened(b, dtype) < widened(a, dtype) ? b : a;
    case ReduceOp::Max:
      return widened(b, dtype) > widened(a, dtype) ? b : a;
    case ReduceOp::Band:
      return a & b;
    case ReduceOp::Bor:
      return a | b;
    case ReduceOp::Bxor:
      return a ^ b;
    default:
      throw std::logic_error("not an operator of integers");
  }
}

}  // namespace

std::uint64_t folded(ReduceOp op, DType dtype, std::int64_t divisor,
                     const std::vector<std::uint64_t>& operands) {
  std::uint64_t result = operands.at(0);
  for (std::size_t i = 1; i < operands.size(); ++i) {
    if (dtype == DType::C64)
      result = complex_op(op, result, operands[i]);
    else if (is_floating(dtype))
      result = float_op(op, dtype, result, operands[i]);
    else
      result = integer_op(op, dtype, result, operands[i]);
  }
  if (divisor == 1) return result;
  if (dtype == DType::C64)
    return float_divided(DType::F32, result >> 32, divisor) << 32 |
           float_divided(DType::F32, result & 0xffffffff, divisor);
  return float_divided(dtype, result, divisor);
}

bool is_nan(DType dtype, std::uint64_t bits) {
  switch (dtype) {
    case DType::F64:
      return (bits & 0x7fffffffffffffff) > 0x7ff0000000000000;
    case DType::F32:
      return (bits & 0x7fffffff) > 0x7f800000;
    case DType::F16:
      return (bits & 0x7fff) > 0x7c00;
    case DType::BF16:
      return (bits & 0x7fff) > 0x7f80;
    default:
      return false;
  }
}

}  // namespace reshard::test
