// SPDX-License-Identifier: BSD-3-Clause
// The lowest and the highest value of a dtype: the start of folds to a maximum or minimum.
#pragma once

#include <cstdint>
#include <limits>

#include "core/base/dtype.h"

namespace reshard::sim {

inline std::int64_t highest_integer(DType dtype) {
  if (dtype == DType::Bool) return 1;
  if (dtype == DType::U8) return 255;
  return std::numeric_limits<std::int64_t>::max() >> (64 - 8 * size_bytes(dtype));
}

template <class T>
T highest(DType dtype) {
  if constexpr (std::numeric_limits<T>::has_infinity)
    return std::numeric_limits<T>::infinity();
  else
    return highest_integer(dtype);
}

template <class T>
T lowest(DType dtype) {
  if constexpr (std::numeric_limits<T>::has_infinity)
    return -std::numeric_limits<T>::infinity();
  else
    return dtype == DType::Bool || dtype == DType::U8 ? 0 : -highest_integer(dtype) - 1;
}

// The distance from 1 to the next larger number of a floating dtype; 0 for others.
inline double spacing_of(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return 0x1p-52;
    case DType::F32:
      return 0x1p-23;
    case DType::F16:
      return 0x1p-10;
    case DType::BF16:
      return 0x1p-7;
    case DType::F8E4M3:
      return 0x1p-3;
    case DType::F8E5M2:
      return 0x1p-2;
    default:
      return 0;
  }
}

}  // namespace reshard::sim
