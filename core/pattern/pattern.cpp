// SPDX-License-Identifier: BSD-3-Clause
#include "core/pattern/pattern.h"

#include <algorithm>
#include <cstring>

#include "core/pattern/pattern_rows.h"
#include "core/pattern/pattern_values.h"

namespace reshard {
namespace {

// Integers up to this are exact, as are sums up to it; for f64 it is what the mix can draw.
std::int64_t exact_integers(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return std::int64_t{1} << 31;
    case DType::F16:
      return 1 << 11;
    case DType::BF16:
      return 1 << 8;
    default:
      return 1 << 24;
  }
}

// Powers of two within [2^-n, 2^n] times a significand are exact and normal.
std::int64_t exact_exponents(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return 1020;
    case DType::F16:
      return 14;
    default:
      return 120;
  }
}

std::int64_t odd_part(std::int64_t n) {
  while (n % 2 == 0) n /= 2;
  return n;
}

}  // namespace

std::uint64_t mix(std::uint64_t index) { return mix_of(index); }

// Origins are so far apart that tensors of less than 2^40 elements have no index in common.
Pattern::Pattern(const Request& request, TensorId tensor)
    : origin_(static_cast<std::int64_t>(tensor) << 40),
      dtype_(request.dtype()),
      moves_only_(request.fold().fold_count == 1 && request.fold().divisor == 1),
      op_(request.fold().op),
      divisor_(request.fold().divisor),
      addends_(request.fold().addend_count),
      zero_axes_(request) {
  const FoldMeaning& fold = request.fold();
  if (moves_only_) return;
  bool exact_bits = is_integer(dtype_) || dtype_ == DType::Bool;
  switch (op_) {
    case ReduceOp::Sum:
    case ReduceOp::Avg:
      if (!exact_bits) plan_sum(fold);
      return;
    case ReduceOp::Product:
      kind_ = Kind::OddInteger;
      if (!exact_bits) plan_product(fold);
      return;
    case ReduceOp::Min:
    case ReduceOp::Max:
      kind_ = Kind::Extreme;
      if (divisor_ > 1) plan_divided_extreme();
      return;
    case ReduceOp::Band:
      kind_ = Kind::BitsAnd;
      return;
    case ReduceOp::Bor:
      kind_ = Kind::BitsOr;
      return;
    case ReduceOp::Bxor:
      return;
  }
}

void Pattern::plan_sum(const FoldMeaning& fold) {
  kind_ = Kind::FloatSum;
  unit_ = odd_part(fold.divisor);
  // Units that an element's addends can have in total.
  std::int64_t units = exact_integers(dtype_) / unit_;
  largest_ = units / fold.fold_count;
  if (largest_ > 0) return;
  largest_ = 1;
  spacing_ = units == 0 ? 0 : ceil_div(fold.addend_count, units);
}

// Only one addend counts, so each can be as large as a sum of all.
void Pattern::plan_divided_extreme() {
  kind_ = Kind::FloatSum;
  unit_ = odd_part(divisor_);
  largest_ = exact_integers(dtype_) / unit_;
  if (largest_ == 0) spacing_ = 0;
}

void Pattern::plan_product(const FoldMeaning& fold) {
  kind_ = Kind::FloatProduct;
  std::int64_t powers = exact_exponents(dtype_);
  largest_ = std::min<std::int64_t>(8, powers / fold.fold_count);
  if (largest_ > 0) return;
  largest_ = 1;
  spacing_ = ceil_div(fold.addend_count, powers);
}

std::uint64_t Pattern::source_bits(std::int64_t index, std::int64_t addend) const {
  std::uint64_t bits = 0;
  visit_values(addend, [&](auto value) { bits = value(origin_ + index); });
  return bits;
}

void Pattern::fill_row(std::int64_t first, std::int64_t count, std::int64_t addend,
                       std::byte* out) const {
  visit_values(addend, [&](auto value) {
    for (std::int64_t i = 0; i < count; ++i) {
      decltype(value(0)) bits = value(origin_ + first + i);
      std::memcpy(out + i * static_cast<std::int64_t>(sizeof bits), &bits, sizeof bits);
    }
  });
}

void Pattern::fill(const Layout& layout, std::int32_t position, std::int64_t addend,
                   std::span<std::byte> bytes) const {
  std::int64_t size = element_count(layout.local_shape(position)) * size_bytes(dtype_);
  RESHARD_CHECK(static_cast<std::int64_t>(bytes.size()) == size,
                std::to_string(bytes.size()) + " bytes for a shard of " + std::to_string(size));
  visit_values(addend, [&](auto value) {
    std::byte* out = bytes.data();
    for_each_row(layout, position, nullptr, [&](std::int64_t first, std::int64_t count, bool has) {
      for (std::int64_t i = 0; i < count; ++i) {
        decltype(value(0)) bits = has ? value(origin_ + first + i) : 0;
        std::memcpy(out, &bits, sizeof bits);
        out += sizeof bits;
      }
    });
  });
}

}  // namespace reshard
