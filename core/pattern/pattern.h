// SPDX-License-Identifier: BSD-3-Clause
// What every element of a test tensor holds, chosen so that misplaced data is found.
//
// Moved data: a fixed 64-bit mix of the row-major global index (and the addend), truncated to the
// dtype and made finite if it is floating.
//
// Data that a request folds or divides must give the same bits however a planner nests folds and
// divisions: all at once, axis by axis, with avg dividing in between. Let F be the number of
// addends to fold, D the request's divisor, and L the limit of the dtype's exact integers (2^8
// bf16, 2^11 f16, 2^24 f32, 2^31 used of f64):
//
//   sum, avg     floating: k * (odd part of D), |k| <= L / (F * odd part). A division by an odd
//                factor leaves an integer, a division by two only changes the exponent. If F is
//                too large for every addend to be a non-zero integer, only as many addends of an
//                element are non-zero as L allows (none if D's odd part alone is above L).
//                integers: any bits, as wrap-around sums are exact.
//   product      floating: +-2^e; one addend of each element has a full significand (c64: the
//                others are real and positive, so that no zero gets a sign).
//                integers: any odd value.
//   min, max     any finite value except -0.0; if divided, k * (odd part of D),
//                |k| <= L / odd part.
//   band, bor    bits of the index and some bits of the addend, so that the fold of many addends
//                still distinguishes elements.
//   bxor         any bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/layout/zero_axes.h"

namespace reshard {

// The 64-bit mix (splitmix64's step and finaliser) of a global index.
std::uint64_t mix(std::uint64_t index);

// What a failed check of one shard found.
struct PatternMismatch {
  std::int64_t count;             // elements that differ
  std::int64_t index;             // row-major global index of the first of them, in local order;
                                  // -1: it is in the shard's padding
  std::uint64_t expected, found;  // bits of that element, as Pattern::source_bits gives them
};

class Pattern {
 public:
  // The tensors of one plan have different values at equal indices.
  explicit Pattern(const Request& request, TensorId tensor = TensorId{0});

  // Little-endian bits of the element `index` (row-major in the global shape) of addend `addend`,
  // in the low size_bytes(dtype) bytes. c64: real part low, imaginary part high.
  std::uint64_t source_bits(std::int64_t index, std::int64_t addend) const;
  // The values of elements first .. first + count - 1, dense.
  void fill_row(std::int64_t first, std::int64_t count, std::int64_t addend, std::byte* out) const;
  // Bits that a destination element must have: the fold of `addends` (Request::addends_wanted),
  // divided. Computed from the integers that make the pattern, not by adding floats.
  std::uint64_t expected_bits(std::int64_t index, std::span<const std::int64_t> addends) const;

  // Fills the local shard of `layout`'s rank at `position`, dense row-major, with addend `addend`.
  // `bytes` has exactly the shard's size.
  void fill(const Layout& layout, std::int32_t position, std::int64_t addend,
            std::span<std::byte> bytes) const;
  // Compares a finished destination shard with expected_bits, or with zeros where S->P(sum) leaves
  // them and in padding, element by element; nothing if all agree.
  std::optional<PatternMismatch> check(const Layout& layout, std::int32_t position,
                                       std::span<const std::int64_t> addends,
                                       std::span<const std::byte> bytes) const;

 private:
  enum class Kind : std::uint8_t {
    AnyBits,
    Extreme,
    BitsAnd,
    BitsOr,
    OddInteger,
    FloatSum,  // and divided extremes: small integers in units
    FloatProduct
  };

  void plan_sum(const FoldMeaning& fold);
  void plan_divided_extreme();
  void plan_product(const FoldMeaning& fold);

  // Calls visit(value) once; value(index) gives the bits of one element as the unsigned type of the
  // dtype's width.
  template <class Visit>
  void visit_values(std::int64_t addend, Visit&& visit) const;
  template <class Visit>
  void visit_moved(std::uint64_t salt, Visit&& visit) const;
  template <class Visit>
  void visit_sum(std::int64_t addend, Visit&& visit) const;
  template <class Visit>
  void visit_product(std::int64_t addend, Visit&& visit) const;
  // expected_bits of elements first .. first + count - 1, which count from origin_; at most one
  // chunk of them.
  void expect_row(std::int64_t first, std::int64_t count, std::span<const std::int64_t> addends,
                  std::uint64_t* out) const;
  void expect_sums(std::int64_t first, std::int64_t count, std::span<const std::int64_t> addends,
                   std::uint64_t* out) const;
  void expect_integers(std::int64_t first, std::int64_t count,
                       std::span<const std::int64_t> addends, std::uint64_t* out) const;
  std::uint64_t expected_product(std::int64_t index, std::span<const std::int64_t> addends) const;

  std::int64_t origin_;  // added to the global index of every value
  DType dtype_;
  bool moves_only_;
  ReduceOp op_;
  Kind kind_ = Kind::AnyBits;
  std::int64_t divisor_ = 1;
  std::int64_t unit_ = 1;     // FloatSum: odd part of the divisor
  std::int64_t largest_ = 0;  // FloatSum: largest |k|. FloatProduct: largest |e|
  std::int64_t spacing_ = 1;  // an addend is non-zero (sum) or has a power (product) if (addend + a
                              // mix of the index) is a multiple of this; 0: none is
  std::int64_t addends_ = 1;  // number of addends of the request
  ZeroAxes zero_axes_;
};

}  // namespace reshard
