// SPDX-License-Identifier: BSD-3-Clause
// Computes what a destination element must hold from the integers, exponents and bit patterns
// that make the addends. It repeats no floating-point operation of the store: sums are added as
// integers and never rounded (the pattern leaves nothing to round), and minima and maxima compare
// bit patterns as integers.
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <optional>

#include "core/pattern/pattern_rows.h"
#include "core/pattern/pattern_values.h"

namespace reshard {
namespace {

constexpr std::int64_t kChunk = 256;

// Maps bits to unsigned integers in the same order, and back.
struct OrderKey {
  std::uint64_t sign;
  enum class Kind : std::uint8_t { Unsigned, Signed, Float } kind;

  explicit OrderKey(DType dtype) : sign(std::uint64_t{1} << (size_bytes(dtype) * 8 - 1)) {
    kind = is_floating(dtype)                        ? Kind::Float
           : is_integer(dtype) && dtype != DType::U8 ? Kind::Signed
                                                     : Kind::Unsigned;
  }
  std::uint64_t mask() const { return sign | (sign - 1); }
  std::uint64_t key(std::uint64_t bits) const {
    if (kind == Kind::Unsigned) return bits;
    if (kind == Kind::Signed || (bits & sign) == 0) return bits ^ sign;
    return ~bits & mask();
  }
  std::uint64_t bits(std::uint64_t key) const {
    if (kind == Kind::Unsigned) return key;
    if (kind == Kind::Signed || (key & sign) != 0) return key ^ sign;
    return ~key & mask();
  }
};

std::uint64_t bits_of(DType dtype, double value) {
  switch (dtype) {
    case DType::F64:
      return std::bit_cast<std::uint64_t>(value);
    case DType::F16:
      return half_bits(static_cast<float>(value));
    case DType::BF16:
      return brain_bits(static_cast<float>(value));
    default:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  }
}

std::uint64_t combine(ReduceOp op, std::uint64_t a, std::uint64_t b) {
  switch (op) {
    case ReduceOp::Product:
      return a * b;
    case ReduceOp::Band:
      return a & b;
    case ReduceOp::Bor:
      return a | b;
    case ReduceOp::Bxor:
      return a ^ b;
    default:
      return a + b;
  }
}

}  // namespace

// Rows are computed in chunks, addend by addend, so that work that depends on the addend alone is
// done once per chunk.
void Pattern::expect_sums(std::int64_t first, std::int64_t count,
                          std::span<const std::int64_t> addends, std::uint64_t* out) const {
  std::array<std::int64_t, kChunk> real{}, imaginary{};
  bool complex = dtype_ == DType::C64;
  for (std::int64_t addend : addends) {
    SumTerms terms(addend, largest_, spacing_);
    auto fold = [&](auto&& folded) {
      for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t& at = real[to_index(i)];
        at = folded(at, terms.real(first + i));
      }
    };
    if (op_ == ReduceOp::Sum || addend == addends.front())
      fold(std::plus<std::int64_t>());
    else if (op_ == ReduceOp::Min)
      fold([](std::int64_t a, std::int64_t b) { return std::min(a, b); });
    else
      fold([](std::int64_t a, std::int64_t b) { return std::max(a, b); });
    for (std::int64_t i = 0; complex && i < count; ++i)
      imaginary[to_index(i)] += terms.imaginary(first + i);
  }
  auto divided = [&](std::int64_t total) {
    return bits_of(dtype_, static_cast<double>(total * unit_) / static_cast<double>(divisor_));
  };
  for (std::size_t i = 0; i < to_index(count); ++i)
    out[i] = divided(real[i]) | (complex ? divided(imaginary[i]) << 32 : 0);
}

std::uint64_t Pattern::expected_product(std::int64_t index,
                                        std::span<const std::int64_t> addends) const {
  std::int64_t exponent = 0;
  bool negative = false;
  std::optional<ProductTerm> full;
  for (std::int64_t addend : addends) {
    ProductTerm term = product_term(index, addend, largest_, spacing_, addends_);
    exponent += term.exponent;
    negative ^= (term.mixed & 1) != 0;
    if (term.full) full = term;
  }
  std::uint64_t mixed = full ? full->mixed : 0;
  if (dtype_ != DType::C64) mixed = (mixed & ~std::uint64_t{1}) | std::uint64_t{negative};
  ProductTerm product{mixed, exponent, full.has_value()};
  switch (dtype_) {
    case DType::F64:
      return product_bits<F64Fields>(product);
    case DType::F16:
      return product_bits<F16Fields>(product);
    case DType::BF16:
      return product_bits<BF16Fields>(product);
    case DType::C64:
      return complex_product_bits(product);
    default:
      return product_bits<F32Fields>(product);
  }
}

// Integers, bits, minima and maxima: combined as 64-bit unsigned integers and truncated to the
// width.
void Pattern::expect_integers(std::int64_t first, std::int64_t count,
                              std::span<const std::int64_t> addends, std::uint64_t* out) const {
  OrderKey order(dtype_);
  bool extreme = kind_ == Kind::Extreme;
  for (std::size_t a = 0; a < addends.size(); ++a)
    visit_values(addends[a], [&](auto value) {
      for (std::int64_t i = 0; i < count; ++i) {
        std::uint64_t bits = value(first + i);
        if (extreme) bits = order.key(bits);
        if (a > 0)
          bits = op_ == ReduceOp::Min   ? std::min(out[i], bits)
                 : op_ == ReduceOp::Max ? std::max(out[i], bits)
                                        : combine(op_, out[i], bits);
        out[i] = bits;
      }
    });
  for (std::int64_t i = 0; i < count; ++i)
    out[i] = extreme ? order.bits(out[i]) : out[i] & order.mask();
}

void Pattern::expect_row(std::int64_t first, std::int64_t count,
                         std::span<const std::int64_t> addends, std::uint64_t* out) const {
  if (kind_ == Kind::FloatSum) return expect_sums(first, count, addends, out);
  if (kind_ != Kind::FloatProduct) return expect_integers(first, count, addends, out);
  for (std::int64_t i = 0; i < count; ++i) out[i] = expected_product(first + i, addends);
}

std::uint64_t Pattern::expected_bits(std::int64_t index,
                                     std::span<const std::int64_t> addends) const {
  std::uint64_t bits = 0;
  expect_row(origin_ + index, 1, addends, &bits);
  return bits;
}

namespace {

std::int64_t index_in(std::int64_t first, std::int64_t i) {
  return first == kNoIndex ? kNoIndex : first + i;
}

// Collects differences, in local order.
struct Differences {
  PatternMismatch found{0, 0, 0, 0};
  void add(std::int64_t index, std::uint64_t expected, std::uint64_t bits) {
    if (found.count++ == 0) found = {1, index, expected, bits};
  }
  std::optional<PatternMismatch> result() const {
    return found.count == 0 ? std::nullopt : std::optional(found);
  }
};

}  // namespace

std::optional<PatternMismatch> Pattern::check(const Layout& layout, std::int32_t position,
                                              std::span<const std::int64_t> addends,
                                              std::span<const std::byte> bytes) const {
  std::int64_t size = element_count(layout.local_shape(position)) * size_bytes(dtype_);
  RESHARD_CHECK(static_cast<std::int64_t>(bytes.size()) == size,
                std::to_string(bytes.size()) + " bytes for a shard of " + std::to_string(size));
  RESHARD_CHECK(!addends.empty(), "there are no addends to expect");
  Differences differences;
  const ZeroAxes* zeros = zero_axes_.none() ? nullptr : &zero_axes_;
  const std::byte* in = bytes.data();
  if (moves_only_) {
    visit_values(addends[0], [&](auto value) {
      auto check_row = [&](std::int64_t first, std::int64_t count, bool has_values) {
        for (std::int64_t i = 0; i < count; ++i) {
          decltype(value(0)) expected = has_values ? value(origin_ + first + i) : 0,
                             bits = expected;
          std::memcpy(&bits, in, sizeof bits);
          in += sizeof bits;
          if (bits != expected) differences.add(index_in(first, i), expected, bits);
        }
      };
      for_each_row(layout, position, zeros, check_row);
    });
    return differences.result();
  }
  std::array<std::uint64_t, kChunk> expected;
  auto width = to_index(size_bytes(dtype_));
  auto check_row = [&](std::int64_t first, std::int64_t count, bool has_values) {
    for (std::int64_t done = 0; done < count; done += kChunk) {
      std::int64_t now = std::min(kChunk, count - done);
      if (has_values)
        expect_row(origin_ + first + done, now, addends, expected.data());
      else
        expected.fill(0);
      for (std::int64_t i = 0; i < now; ++i, in += width) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, in, width);
        if (bits != expected[to_index(i)])
          differences.add(index_in(first, done + i), expected[to_index(i)], bits);
      }
    }
  };
  for_each_row(layout, position, zeros, check_row);
  return differences.result();
}

}  // namespace reshard
