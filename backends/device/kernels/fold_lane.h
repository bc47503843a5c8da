// SPDX-License-Identifier: BSD-3-Clause
// What one thread does in a fold: it is one lane of one tile, and folds the operands of each
// element in the order in which they are listed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/device/device.h"
#include "backends/device/kernels/lane_walk.h"

namespace reshard::backends::kernels {

// Folds of one element type, kCount elements at a time. The operator is a run-time value that is
// the same for all threads, so testing it again costs next to nothing, and only one kernel per type
// and width has to be compiled.
template <class T, int kCount>
struct FoldLane {
  const FoldTile* tiles;
  int lanes, log2_lanes;
  ReduceOp op;
  std::int64_t divisor;

  static constexpr int kBytes = kCount * static_cast<int>(sizeof(T));
  struct alignas(kBytes) Unit {
    T values[kCount];
  };

  RESHARD_ON_DEVICE void operator()(std::int64_t thread) const {
    const FoldTile tile = tiles[thread >> log2_lanes];
    auto lane = static_cast<std::int32_t>(thread & (lanes - 1));
    std::int32_t parts = tile.count / kCount, left = tile.rows * parts - lane;
    if (left <= 0) return;
    Walk walk(parts, lanes, lane);
    Track<std::byte> to(tile.destination, tile.destination_pitch, kBytes, walk);
    // The row and byte offset within the operands, which have their own pitches.
    std::int64_t row = tile.first_row + walk.row(), row_step = walk.row_step();
    for (; left > 0; left -= lanes) {
      store(to.at, divided(folded(tile, row, tile.offset + std::int64_t{walk.column()} * kBytes)));
      bool wraps = walk.advance();
      row += row_step + (wraps ? 1 : 0);
      to.advance(wraps);
    }
  }

 private:
  RESHARD_ON_DEVICE static Unit unit_of(const FoldOperand& operand, std::int64_t row,
                                        std::int64_t offset) {
    return load<Unit>(operand.data + row * operand.pitch + offset);
  }

  // The left fold of all operands. Four operands are loaded at a time.
  RESHARD_ON_DEVICE Unit folded(const FoldTile& tile, std::int64_t row, std::int64_t offset) const {
    Unit sum = unit_of(tile.operands[0], row, offset);
    std::int32_t j = 1;
    for (; j + kUnroll <= tile.operand_count; j += kUnroll) {
      Unit next[kUnroll];
      RESHARD_UNROLL
      for (int k = 0; k < kUnroll; ++k) next[k] = unit_of(tile.operands[j + k], row, offset);
      RESHARD_UNROLL
      for (int k = 0; k < kUnroll; ++k) combine(sum, next[k]);
    }
    for (; j < tile.operand_count; ++j) combine(sum, unit_of(tile.operands[j], row, offset));
    return sum;
  }

  RESHARD_ON_DEVICE void combine(Unit& sum, const Unit& next) const {
    using namespace elements;
    constexpr bool kTruth = std::is_same_v<T, Truth>, kComplex = std::is_same_v<T, Complex>;
    if constexpr (!kTruth) {
      if (op == ReduceOp::Sum) return apply<Add>(sum, next);
      if (op == ReduceOp::Product) return apply<Multiply>(sum, next);
    }
    if constexpr (!kComplex) {
      if (op == ReduceOp::Min) return apply<Extreme<false>>(sum, next);
      if (op == ReduceOp::Max) return apply<Extreme<true>>(sum, next);
    }
    if constexpr (kTruth || std::is_integral_v<T>) {
      if (op == ReduceOp::Band) return apply<Bits<BitOp::And>>(sum, next);
      if (op == ReduceOp::Bor) return apply<Bits<BitOp::Or>>(sum, next);
      if (op == ReduceOp::Bxor) return apply<Bits<BitOp::Xor>>(sum, next);
    }
  }

  template <class Op>
  RESHARD_ON_DEVICE static void apply(Unit& sum, const Unit& next) {
    RESHARD_UNROLL
    for (int i = 0; i < kCount; ++i) sum.values[i] = Op::apply(sum.values[i], next.values[i]);
  }

  RESHARD_ON_DEVICE Unit divided(Unit part) const {
    if constexpr (elements::kIsFloat<T> || std::is_same_v<T, elements::Complex>)
      if (divisor != 1) {
        RESHARD_UNROLL
        for (int i = 0; i < kCount; ++i)
          part.values[i] = elements::divided(part.values[i], divisor);
      }
    return part;
  }
};

}  // namespace reshard::backends::kernels
