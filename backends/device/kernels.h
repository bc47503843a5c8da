// SPDX-License-Identifier: BSD-3-Clause
// The kernels, one source for two Thrust systems: kernels_cuda.cu compiles it for the GPU, kernels_host.cpp for the processor, where tests run it on machines without a GPU.
//
// Speed. A thread is one lane of one tile and reads one descriptor. Lanes stand side by side: lane i takes units i, i + lanes, i + 2 lanes ... of the tile, so that a warp reads and
// writes whole lines. Four units are under way at a time, loaded before the first is stored: enough of them to cover the memory's latency. Pointers advance by
// constants worked out once per thread; the inner loop divides and multiplies nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>

#include "backends/device/device.h"
#include "core/bytes/element_ops.h"

#if defined(__CUDACC__)
#define RESHARD_UNROLL _Pragma("unroll")
#else
#define RESHARD_UNROLL
#endif

namespace reshard::backends::kernels {

// What one lane moves at a time. 16 bytes are one load of a GPU.
template <int kBytes>
struct alignas(kBytes) Unit {
  using Word = std::conditional_t<(kBytes >= 4), std::uint32_t, std::conditional_t<kBytes == 2, std::uint16_t, std::uint8_t>>;
  Word words[static_cast<std::size_t>(kBytes) / sizeof(Word)];
};

// Aligned loads and stores of any type from bytes.
template <class T>
RESHARD_ON_DEVICE T load(const std::byte* at) {
  T value;
  std::memcpy(static_cast<void*>(&value), __builtin_assume_aligned(at, alignof(T)), sizeof value);
  return value;
}
template <class T>
RESHARD_ON_DEVICE void store(std::byte* at, const T& value) {
  std::memcpy(__builtin_assume_aligned(at, alignof(T)), static_cast<const void*>(&value), sizeof value);
}

// The way of a lane through the rows of a tile, `lanes` units at a time.
class Walk {
 public:
  RESHARD_ON_DEVICE Walk(std::int32_t units, std::int32_t lanes, std::int32_t lane) : units_(units) {
    // A lane of a tile with long rows stays in one row for a while, and starts in the first.
    bool long_rows = units > lanes;
    row_ = long_rows ? 0 : lane / units;
    column_ = long_rows ? lane : lane % units;
    row_step_ = long_rows ? 0 : lanes / units;
    column_step_ = long_rows ? lanes : lanes % units;
  }
  RESHARD_ON_DEVICE std::int64_t start(std::int64_t pitch, int unit_bytes) const { return row_ * pitch + std::int64_t{column_} * unit_bytes; }
  RESHARD_ON_DEVICE std::int64_t step(std::int64_t pitch, int unit_bytes) const { return row_step_ * pitch + std::int64_t{column_step_} * unit_bytes; }
  // What is to be added where the column wraps around.
  RESHARD_ON_DEVICE std::int64_t wrap(std::int64_t pitch, int unit_bytes) const { return pitch - std::int64_t{units_} * unit_bytes; }
  RESHARD_ON_DEVICE std::int32_t row() const { return row_; }
  RESHARD_ON_DEVICE std::int32_t column() const { return column_; }
  RESHARD_ON_DEVICE std::int32_t row_step() const { return row_step_; }
  // One step; whether the column wrapped around.
  RESHARD_ON_DEVICE bool advance() {
    column_ += column_step_;
    bool wraps = column_ >= units_;
    if (wraps) column_ -= units_;
    return wraps;
  }

 private:
  std::int32_t units_, row_, column_, row_step_, column_step_;
};

// A pointer on such a way.
template <class Byte>
struct Track {
  Byte* at;
  std::int64_t step, wrap;
  RESHARD_ON_DEVICE Track(Byte* from, std::int64_t pitch, int unit_bytes, const Walk& walk)
      : at(from + walk.start(pitch, unit_bytes)), step(walk.step(pitch, unit_bytes)), wrap(walk.wrap(pitch, unit_bytes)) {}
  RESHARD_ON_DEVICE void advance(bool wraps) { at += step + (wraps ? wrap : 0); }
};

inline constexpr int kUnroll = 4;

template <int kBytes>
struct CopyLane {
  const CopyTile* tiles;
  int lanes, log2_lanes;

  RESHARD_ON_DEVICE void operator()(std::int64_t thread) const {
    const CopyTile tile = tiles[thread >> log2_lanes];
    auto lane = static_cast<std::int32_t>(thread & (lanes - 1));
    std::int32_t left = tile.rows * tile.units - lane;
    if (left <= 0) return;
    Walk walk(tile.units, lanes, lane);
    Track<std::byte> to(tile.destination, tile.destination_pitch, kBytes, walk);
    if (tile.source == nullptr)
      clear(to, walk, left);
    else
      move(to, Track<const std::byte>(tile.source, tile.source_pitch, kBytes, walk), walk, left);
  }

 private:
  RESHARD_ON_DEVICE void move(Track<std::byte> to, Track<const std::byte> from, Walk walk, std::int32_t left) const {
    for (; left > (kUnroll - 1) * lanes; left -= kUnroll * lanes) {
      Unit<kBytes> units[kUnroll];
      std::byte* out[kUnroll];
      RESHARD_UNROLL
      for (int k = 0; k < kUnroll; ++k) {
        units[k] = load<Unit<kBytes>>(from.at);
        out[k] = to.at;
        bool wraps = walk.advance();
        from.advance(wraps);
        to.advance(wraps);
      }
      RESHARD_UNROLL
      for (int k = 0; k < kUnroll; ++k) store(out[k], units[k]);
    }
    for (; left > 0; left -= lanes) {
      store(to.at, load<Unit<kBytes>>(from.at));
      bool wraps = walk.advance();
      from.advance(wraps);
      to.advance(wraps);
    }
  }

  RESHARD_ON_DEVICE void clear(Track<std::byte> to, Walk walk, std::int32_t left) const {
    for (; left > 0; left -= lanes) {
      store(to.at, Unit<kBytes>{});
      to.advance(walk.advance());
    }
  }
};

// Folds of one element type, kCount elements at a time. The operator is the same for all threads, so that asking for it anew costs next to nothing, and one kernel
// per type and width is all that must be compiled.
template <class T, int kCount>
struct FoldLane {
  const FoldTile* tiles;
  int lanes, log2_lanes;
  ReduceOp op;
  std::int64_t divisor;

  static constexpr int kBytes = kCount * static_cast<int>(sizeof(T));
  struct alignas(kBytes) Part {
    T values[kCount];
  };

  RESHARD_ON_DEVICE void operator()(std::int64_t thread) const {
    const FoldTile tile = tiles[thread >> log2_lanes];
    auto lane = static_cast<std::int32_t>(thread & (lanes - 1));
    std::int32_t parts = tile.count / kCount, left = tile.rows * parts - lane;
    if (left <= 0) return;
    Walk walk(parts, lanes, lane);
    Track<std::byte> to(tile.destination, tile.destination_pitch, kBytes, walk);
    // Rows and bytes behind the tile's beginning: operands have pitches of their own.
    std::int64_t row = tile.first_row + walk.row(), row_step = walk.row_step();
    for (; left > 0; left -= lanes) {
      store(to.at, divided(folded(tile, row, tile.offset + std::int64_t{walk.column()} * kBytes)));
      bool wraps = walk.advance();
      row += row_step + (wraps ? 1 : 0);
      to.advance(wraps);
    }
  }

 private:
  RESHARD_ON_DEVICE static Part part_of(const FoldOperand& operand, std::int64_t row, std::int64_t offset) {
    return load<Part>(operand.data + row * operand.pitch + offset);
  }

  // The left fold of all operands. The loads of four operands are under way at a time.
  RESHARD_ON_DEVICE Part folded(const FoldTile& tile, std::int64_t row, std::int64_t offset) const {
    Part sum = part_of(tile.operands[0], row, offset);
    std::int32_t j = 1;
    for (; j + kUnroll <= tile.operand_count; j += kUnroll) {
      Part next[kUnroll];
      RESHARD_UNROLL
      for (int k = 0; k < kUnroll; ++k) next[k] = part_of(tile.operands[j + k], row, offset);
      RESHARD_UNROLL
      for (int k = 0; k < kUnroll; ++k) combine(sum, next[k]);
    }
    for (; j < tile.operand_count; ++j) combine(sum, part_of(tile.operands[j], row, offset));
    return sum;
  }

  RESHARD_ON_DEVICE void combine(Part& sum, const Part& next) const {
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
  RESHARD_ON_DEVICE static void apply(Part& sum, const Part& next) {
    RESHARD_UNROLL
    for (int i = 0; i < kCount; ++i) sum.values[i] = Op::apply(sum.values[i], next.values[i]);
  }

  RESHARD_ON_DEVICE Part divided(Part part) const {
    if constexpr (elements::kIsFloat<T> || std::is_same_v<T, elements::Complex>)
      if (divisor != 1) {
        RESHARD_UNROLL
        for (int i = 0; i < kCount; ++i) part.values[i] = elements::divided(part.values[i], divisor);
      }
    return part;
  }
};

inline int log2_of(int lanes) {
  int log2 = 0;
  while (1 << log2 < lanes) ++log2;
  return log2;
}

template <class Policy, class Lane>
void for_each_lane(const Policy& policy, std::int64_t tiles, const Lane& lane) {
  thrust::for_each_n(policy, thrust::counting_iterator<std::int64_t>(0), tiles << lane.log2_lanes, lane);
}

// `policy` is Thrust's execution policy: where, and on which stream.
template <class Policy>
void copy(const Policy& policy, const CopyLaunch& launch) {
  auto run = [&](auto bytes) { for_each_lane(policy, launch.count, CopyLane<decltype(bytes)::value>{launch.tiles, launch.lanes, log2_of(launch.lanes)}); };
  switch (launch.unit_bytes) {
    case 16:
      return run(std::integral_constant<int, 16>{});
    case 8:
      return run(std::integral_constant<int, 8>{});
    case 4:
      return run(std::integral_constant<int, 4>{});
    case 2:
      return run(std::integral_constant<int, 2>{});
    default:
      return run(std::integral_constant<int, 1>{});
  }
}

template <class T, class Policy>
void fold_elements(const Policy& policy, const FoldLaunch& launch) {
  constexpr int kWide = 16 / static_cast<int>(sizeof(T));
  int log2_lanes = log2_of(launch.lanes);
  if (launch.unit_bytes == 16)
    for_each_lane(policy, launch.count, FoldLane<T, kWide>{launch.tiles, launch.lanes, log2_lanes, launch.op, launch.divisor});
  else
    for_each_lane(policy, launch.count, FoldLane<T, 1>{launch.tiles, launch.lanes, log2_lanes, launch.op, launch.divisor});
}

template <class Policy>
void fold(const Policy& policy, const FoldLaunch& launch) {
  switch (launch.dtype) {
    case DType::F64:
      return fold_elements<double>(policy, launch);
    case DType::F32:
      return fold_elements<float>(policy, launch);
    case DType::F16:
      return fold_elements<Eigen::half>(policy, launch);
    case DType::BF16:
      return fold_elements<Eigen::bfloat16>(policy, launch);
    case DType::I64:
      return fold_elements<std::int64_t>(policy, launch);
    case DType::I32:
      return fold_elements<std::int32_t>(policy, launch);
    case DType::I16:
      return fold_elements<std::int16_t>(policy, launch);
    case DType::I8:
      return fold_elements<std::int8_t>(policy, launch);
    case DType::U8:
      return fold_elements<std::uint8_t>(policy, launch);
    case DType::Bool:
      return fold_elements<elements::Truth>(policy, launch);
    case DType::C64:
      return fold_elements<elements::Complex>(policy, launch);
    case DType::F8E4M3:
    case DType::F8E5M2:
      return;
  }
}

}  // namespace reshard::backends::kernels
