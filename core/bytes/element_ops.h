// SPDX-License-Identifier: BSD-3-Clause
// Folds one element with another: the only definition of the arithmetic, compiled into the host
// store and, by nvcc, into the GPU kernels.
//
// box_fold.h defines what the operators mean. On a GPU, too, every operation must be rounded
// separately: nvcc needs -fmad=false and its defaults for division and denormals (IEEE). The bits
// of a NaN that arithmetic produces depend on the processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <Eigen/Core>

#if defined(__CUDACC__)
#define RESHARD_ON_DEVICE __host__ __device__
#else
#define RESHARD_ON_DEVICE
#endif

namespace reshard::elements {

template <class T>
struct Unsigned {
  // 16-bit unsigned operands would be promoted to int, and the product of two ints can overflow.
  using Type = std::conditional_t<(sizeof(T) < 4), std::uint32_t, std::make_unsigned_t<T>>;
};

struct Complex {
  float real, imaginary;
};

// Stored as one byte; any non-zero byte is true.
struct Truth {
  std::uint8_t byte;
};

template <class T>
inline constexpr bool kIsFloat = std::is_floating_point_v<T> || std::is_same_v<T, Eigen::half> ||
                                 std::is_same_v<T, Eigen::bfloat16>;

struct Add {
  template <class T>
  RESHARD_ON_DEVICE static T apply(T a, T b) {
    if constexpr (std::is_same_v<T, Complex>)
      return {a.real + b.real, a.imaginary + b.imaginary};
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<typename Unsigned<T>::Type>(a) +
                            static_cast<typename Unsigned<T>::Type>(b));
    else if constexpr (std::is_floating_point_v<T>)
      return a + b;
    else
      return static_cast<T>(static_cast<float>(a) + static_cast<float>(b));
  }
};

struct Multiply {
  template <class T>
  RESHARD_ON_DEVICE static T apply(T a, T b) {
    if constexpr (std::is_same_v<T, Complex>)
      return {a.real * b.real - a.imaginary * b.imaginary,
              a.real * b.imaginary + a.imaginary * b.real};
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<typename Unsigned<T>::Type>(a) *
                            static_cast<typename Unsigned<T>::Type>(b));
    else if constexpr (std::is_floating_point_v<T>)
      return a * b;
    else
      return static_cast<T>(static_cast<float>(a) * static_cast<float>(b));
  }
};

template <bool kLarger>
struct Extreme {
  template <class T>
  RESHARD_ON_DEVICE static T apply(T a, T b) {
    if constexpr (std::is_same_v<T, Truth>) {
      bool x = a.byte != 0, y = b.byte != 0;
      return {static_cast<std::uint8_t>(kLarger ? x || y : x && y)};
    } else if constexpr (std::is_same_v<T, Eigen::half> || std::is_same_v<T, Eigen::bfloat16>) {
      float x = static_cast<float>(a), y = static_cast<float>(b);
      bool right = (kLarger ? y > x : y < x) || (y != y && x == x);
      return right ? b : a;
    } else {
      bool right = kLarger ? b > a : b < a;
      if constexpr (std::is_floating_point_v<T>) right = right || (b != b && a == a);
      return right ? b : a;
    }
  }
};

enum class BitOp { And, Or, Xor };

template <BitOp kOp>
struct Bits {
  template <class T>
  RESHARD_ON_DEVICE static T apply(T a, T b) {
    if constexpr (std::is_same_v<T, Truth>) {
      bool x = a.byte != 0, y = b.byte != 0;
      return {static_cast<std::uint8_t>(kOp == BitOp::And  ? x && y
                                        : kOp == BitOp::Or ? x || y
                                                           : x != y)};
    } else {
      return static_cast<T>(kOp == BitOp::And ? a & b : kOp == BitOp::Or ? a | b : a ^ b);
    }
  }
};

template <class T>
RESHARD_ON_DEVICE T load(const std::byte* at) {
  T value;
  std::memcpy(static_cast<void*>(&value), at, sizeof value);
  return value;
}
template <class T>
RESHARD_ON_DEVICE void store(std::byte* at, T value) {
  std::memcpy(at, static_cast<const void*>(&value), sizeof value);
}

template <class T>
RESHARD_ON_DEVICE T divided(T value, std::int64_t divisor) {
  if constexpr (std::is_same_v<T, Complex>)
    return {value.real / static_cast<float>(divisor),
            value.imaginary / static_cast<float>(divisor)};
  else if constexpr (std::is_floating_point_v<T>)
    return value / static_cast<T>(divisor);
  else
    return static_cast<T>(static_cast<float>(value) / static_cast<float>(divisor));
}

}  // namespace reshard::elements
