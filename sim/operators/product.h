// SPDX-License-Identifier: BSD-3-Clause
// The product of two matrices, the one definition of its order: for every element the left fold
// over the contracted index.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace reshard::sim {

// Adds a (rows x inner) times b (inner x columns) to out, all row-major. Integers wrap.
//
// Row by row, a multiple of a row of b at a time: Eigen's blocked product adds up in an order that
// depends on the caches of the machine.
template <class T>
void add_product(const T* a, const T* b, std::int64_t rows, std::int64_t inner,
                 std::int64_t columns, T* out) {
  using Number = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                             std::type_identity<T>>::type;
  using Row = Eigen::Array<Number, Eigen::Dynamic, 1>;
  for (std::int64_t i = 0; i < rows; ++i) {
    Eigen::Map<Row> to(reinterpret_cast<Number*>(out + i * columns), columns);
    for (std::int64_t k = 0; k < inner; ++k)
      to += static_cast<Number>(a[i * inner + k]) *
            Eigen::Map<const Row>(reinterpret_cast<const Number*>(b + k * columns), columns);
  }
}

}  // namespace reshard::sim
