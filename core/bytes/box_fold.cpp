// SPDX-License-Identifier: BSD-3-Clause
#include "core/bytes/box_fold.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/bytes/box_copy.h"
#include "core/bytes/element_ops.h"

namespace reshard {

namespace {

using namespace elements;

// Rows are folded in stretches of this size, which stay in the L1 cache while all operands are
// applied.
constexpr std::int64_t kStretchBytes = 8192;

template <class T, class Op>
void fold_stretch(std::span<const std::byte* const> operands, std::int64_t offset,
                  std::byte* __restrict out, std::int64_t count) {
  auto step = static_cast<std::int64_t>(sizeof(T));
  const std::byte* first = operands[0] + offset;
  if (operands.size() == 1) {
    std::memcpy(out, first, static_cast<std::size_t>(count * step));
    return;
  }
  const std::byte* second = operands[1] + offset;
  for (std::int64_t i = 0; i < count; ++i)
    store<T>(out + i * step, Op::apply(load<T>(first + i * step), load<T>(second + i * step)));
  for (std::size_t j = 2; j < operands.size(); ++j) {
    const std::byte* next = operands[j] + offset;
    for (std::int64_t i = 0; i < count; ++i)
      store<T>(out + i * step, Op::apply(load<T>(out + i * step), load<T>(next + i * step)));
  }
}

template <class T, class Op>
void fold(std::int64_t divisor, std::span<const std::byte* const> operands, std::byte* out,
          std::int64_t count) {
  auto step = static_cast<std::int64_t>(sizeof(T));
  std::int64_t stretch = kStretchBytes / step;
  for (std::int64_t done = 0; done < count; done += stretch) {
    std::int64_t now = std::min(stretch, count - done);
    std::byte* at = out + done * step;
    fold_stretch<T, Op>(operands, done * step, at, now);
    if constexpr (kIsFloat<T> || std::is_same_v<T, Complex>)
      for (std::int64_t i = 0; divisor != 1 && i < now; ++i)
        store<T>(at + i * step, divided(load<T>(at + i * step), divisor));
  }
}

using FoldRow = void (*)(std::int64_t, std::span<const std::byte* const>, std::byte*, std::int64_t);

// The kernel of an operator for one element type; null if it is not defined for that type.
template <class T>
FoldRow kernel(ReduceOp op) {
  constexpr bool kTruth = std::is_same_v<T, Truth>, kComplex = std::is_same_v<T, Complex>;
  if constexpr (!kTruth) {
    if (op == ReduceOp::Sum) return fold<T, Add>;
    if (op == ReduceOp::Product) return fold<T, Multiply>;
  }
  if constexpr (!kComplex) {
    if (op == ReduceOp::Min) return fold<T, Extreme<false>>;
    if (op == ReduceOp::Max) return fold<T, Extreme<true>>;
  }
  if constexpr (kTruth || std::is_integral_v<T>) {
    if (op == ReduceOp::Band) return fold<T, Bits<BitOp::And>>;
    if (op == ReduceOp::Bor) return fold<T, Bits<BitOp::Or>>;
    if (op == ReduceOp::Bxor) return fold<T, Bits<BitOp::Xor>>;
  }
  return nullptr;
}

FoldRow kernel(ReduceOp op, DType dtype) {
  switch (dtype) {
    case DType::F64:
      return kernel<double>(op);
    case DType::F32:
      return kernel<float>(op);
    case DType::F16:
      return kernel<Eigen::half>(op);
    case DType::BF16:
      return kernel<Eigen::bfloat16>(op);
    case DType::I64:
      return kernel<std::int64_t>(op);
    case DType::I32:
      return kernel<std::int32_t>(op);
    case DType::I16:
      return kernel<std::int16_t>(op);
    case DType::I8:
      return kernel<std::int8_t>(op);
    case DType::U8:
      return kernel<std::uint8_t>(op);
    case DType::Bool:
      return kernel<Truth>(op);
    case DType::C64:
      return kernel<Complex>(op);
    case DType::F8E4M3:
    case DType::F8E5M2:
      return nullptr;
  }
  return nullptr;
}

}  // namespace

bool can_fold(ReduceOp op, DType dtype, std::int64_t divisor) {
  return kernel(op, dtype) != nullptr && divisor >= 1 && (divisor == 1 || can_divide(dtype));
}

void fold_row(ReduceOp op, DType dtype, std::int64_t divisor,
              std::span<const std::byte* const> operands, std::byte* out, std::int64_t count) {
  RESHARD_CHECK(can_fold(op, dtype, divisor) && !operands.empty(),
                fmt::format("{} of {} divided by {}, {} operands", text(op), text(dtype), divisor,
                            operands.size()));
  kernel(op, dtype)(divisor, operands, out, count);
}

void BoxFold::run(ReduceOp op, DType dtype, std::int64_t divisor) const {
  using Offsets = std::vector<std::int64_t>;
  std::vector<BoxPlace> places;
  places.reserve(places_.size());
  for (const BoxOrigin& place : places_) places.push_back({place.shape, place.lo});
  BoxRows<Offsets> rows(Offsets(places.size()), places, extents_, size_bytes(dtype));
  std::vector<const std::byte*> row(operands_.size());
  rows.for_each(0, [&](const Offsets& at) {
    for (std::size_t k = 0; k < row.size(); ++k) row[k] = operands_[k] + at[k + 1];
    fold_row(op, dtype, divisor, row, destination_ + at[0], rows.row_bytes / size_bytes(dtype));
  });
}

}  // namespace reshard
