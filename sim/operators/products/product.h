// SPDX-License-Identifier: BSD-3-Clause
// The product of two matrices with a defined order of summation: each element is the left fold over
// the contracted index.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace reshard::sim {

// Adds columns [from, from + kWidth) of the product, cut to the existing ones. Copies those columns
// of b into a contiguous panel, then goes over all rows of a. The order of summation does not
// depend on the blocks, whereas in Eigen's own product it depends on the machine's caches.
template <int kWidth, class Number>
void add_product_columns(const Number* a, const Number* b, std::int64_t rows, std::int64_t inner,
                         std::int64_t columns, std::int64_t from, Number* out) {
  constexpr std::int64_t kDepth = 512;  // rows of a panel: 64 KiB of f32 at width 32
  using Tile = Eigen::Array<Number, kWidth, 1>;
  const std::int64_t width = std::min<std::int64_t>(kWidth, columns - from);
  std::vector<Number> panel(to_index(std::min(kDepth, inner) * kWidth));
  for (std::int64_t first = 0; first < inner; first += kDepth) {
    const std::int64_t depth = std::min(kDepth, inner - first);
    for (std::int64_t k = 0; k < depth; ++k)
      std::copy_n(b + (first + k) * columns + from, width, panel.data() + k * kWidth);
    for (std::int64_t i = 0; i < rows; ++i) {
      Tile sum = Tile::Zero();
      Number* to = out + i * columns + from;
      std::copy_n(to, width, sum.data());
      for (std::int64_t k = 0; k < depth; ++k)
        sum += a[i * inner + first + k] * Eigen::Map<const Tile>(panel.data() + k * kWidth);
      std::copy_n(sum.data(), width, to);
    }
  }
}

// Adds a (rows x inner) times b (inner x columns) to out, all row-major. Integers wrap.
template <class T>
void add_product(const T* a, const T* b, std::int64_t rows, std::int64_t inner,
                 std::int64_t columns, T* out) {
  using Number = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                             std::type_identity<T>>::type;
  constexpr int kWide = 32, kNarrow = 8;
  const int width = columns >= kWide ? kWide : kNarrow;
  for (std::int64_t from = 0; from < columns; from += width)
    (width == kWide ? add_product_columns<kWide, Number>
                    : add_product_columns<kNarrow, Number>)(reinterpret_cast<const Number*>(a),
                                                            reinterpret_cast<const Number*>(b),
                                                            rows, inner, columns, from,
                                                            reinterpret_cast<Number*>(out));
}

}  // namespace reshard::sim
