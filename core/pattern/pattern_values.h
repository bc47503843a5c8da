// SPDX-License-Identifier: BSD-3-Clause
// The bits of one element, for both halves of Pattern (filling and checking). Everything is inlined
// into a loop over a row, so that an element costs about as much as its mix.
#pragma once

#include <bit>
#include <cstdint>

#include "core/base/errors.h"
#include "core/pattern/pattern.h"

namespace reshard {

inline std::uint64_t finalised(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
inline std::uint64_t mix_of(std::uint64_t index) { return finalised(index + 0x9e3779b97f4a7c15u); }
// Added to the index before mixing; 0 for addend 0.
inline std::uint64_t salt_of(std::int64_t addend) {
  return static_cast<std::uint64_t>(addend) * 0xd6e8feb86659fd93u;
}
// Uniform in [0, n), n <= 2^32, from the high half of a mix.
inline std::int64_t below(std::uint64_t mixed, std::int64_t n) {
  return static_cast<std::int64_t>((mixed >> 32) * static_cast<std::uint64_t>(n) >> 32);
}

// Truncates to a float format; if all bits of `kSpecial` are set (infinity, NaN), clears the top
// exponent bit. kSpecial 0 with kFlip 0: integers.
template <class U, std::uint64_t kSpecial, std::uint64_t kFlip>
inline U finite(std::uint64_t bits) {
  U out = static_cast<U>(bits);
  if ((out & static_cast<U>(kSpecial)) == static_cast<U>(kSpecial))
    out = static_cast<U>(out ^ static_cast<U>(kFlip));
  return out;
}

inline std::uint64_t finite_pair(std::uint64_t bits) {
  constexpr std::uint64_t kSpecial = 0x7f800000, kFlip = 0x40000000;
  std::uint64_t high = finite<std::uint32_t, kSpecial, kFlip>(bits >> 32);
  return high << 32 | finite<std::uint32_t, kSpecial, kFlip>(bits);
}

// Bits of a finite value that the format represents exactly; never -0.
inline std::uint16_t half_bits(float value) {
  auto bits = std::bit_cast<std::uint32_t>(value);
  std::uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude == 0) return 0;
  int exponent = static_cast<int>(magnitude >> 23) - 127;
  if (exponent >= -14)
    return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(exponent + 15) << 10 |
                                      (magnitude >> 13 & 0x3ffu));
  if (exponent < -24) return static_cast<std::uint16_t>(sign);
  return static_cast<std::uint16_t>(sign |
                                    ((magnitude & 0x7fffffu) | 0x800000u) >> (-1 - exponent));
}
inline std::uint16_t brain_bits(float value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
}

// The bit fields of a float format.
template <class U, int kSignificand, int kBias>
struct FloatFields {
  using Bits = U;
  static U bits(bool negative, std::int64_t exponent, std::uint64_t significand) {
    constexpr int kSign = static_cast<int>(sizeof(U)) * 8 - 1;
    constexpr std::uint64_t kMask = (std::uint64_t{1} << kSignificand) - 1;
    return static_cast<U>(std::uint64_t{negative} << kSign |
                          static_cast<std::uint64_t>(exponent + kBias) << kSignificand |
                          (significand & kMask));
  }
};
using F64Fields = FloatFields<std::uint64_t, 52, 1023>;
using F32Fields = FloatFields<std::uint32_t, 23, 127>;
using F16Fields = FloatFields<std::uint16_t, 10, 15>;
using BF16Fields = FloatFields<std::uint16_t, 7, 127>;

// One addend of a product: sign, 2^exponent, and a significand if it is the element's only full
// one.
struct ProductTerm {
  std::uint64_t mixed;
  std::int64_t exponent;
  bool full;
};

template <class Fields>
typename Fields::Bits product_bits(const ProductTerm& term) {
  return Fields::bits((term.mixed & 1) != 0, term.exponent, term.full ? term.mixed >> 1 : 0);
}
inline std::uint64_t complex_product_bits(const ProductTerm& term) {
  if (!term.full) return F32Fields::bits(false, term.exponent, 0);
  std::uint64_t imaginary =
      F32Fields::bits((term.mixed >> 24 & 1) != 0, term.exponent, term.mixed >> 25);
  return imaginary << 32 | product_bits<F32Fields>(term);
}

// Whether an addend is non-zero (sum) or has a power (product): one in `spacing` is chosen, a
// different one for each element.
inline bool chosen(std::int64_t index, std::int64_t addend, std::int64_t spacing) {
  if (spacing <= 1) return spacing == 1;
  return (addend + below(mix_of(static_cast<std::uint64_t>(index)), spacing)) % spacing == 0;
}

// The integers that make a sum; for c64 the imaginary part's come from the low half of the mix.
struct SumTerms {
  std::int64_t addend, largest, spacing;
  std::uint64_t salt;
  SumTerms(std::int64_t addend_in, std::int64_t largest_in, std::int64_t spacing_in)
      : addend(addend_in), largest(largest_in), spacing(spacing_in), salt(salt_of(addend_in)) {}
  std::int64_t real(std::int64_t index) const { return term(index, 0); }
  std::int64_t imaginary(std::int64_t index) const { return term(index, 32); }
  std::int64_t term(std::int64_t index, int rotate) const {
    if (spacing != 1 && !chosen(index, addend, spacing)) return 0;
    return below(mix_of(static_cast<std::uint64_t>(index) + salt) << rotate, 2 * largest + 1) -
           largest;
  }
};

inline ProductTerm product_term(std::int64_t index, std::int64_t addend, std::int64_t largest,
                                std::int64_t spacing, std::int64_t addends) {
  std::uint64_t own = mix_of(static_cast<std::uint64_t>(index) + salt_of(addend));
  std::int64_t exponent =
      chosen(index, addend, spacing) ? below(own, 2 * largest + 1) - largest : 0;
  return {own, exponent, below(mix_of(~static_cast<std::uint64_t>(index)), addends) == addend};
}

// Calls visit with a function from an index to raw(index), truncated to the dtype.
template <bool kNoNegativeZero, class Raw, class Visit>
void visit_cut(DType dtype, Raw raw, Visit&& visit) {
  auto as = [&]<class U, std::uint64_t kSpecial, std::uint64_t kFlip>() {
    visit([raw](std::int64_t index) {
      U bits = finite<U, kSpecial, kFlip>(raw(static_cast<std::uint64_t>(index)));
      if (kNoNegativeZero && kSpecial != 0 &&
          bits == static_cast<U>(std::uint64_t{1} << (sizeof(U) * 8 - 1)))
        bits = 0;
      return bits;
    });
  };
  switch (dtype) {
    case DType::F64:
      return as.template operator()<std::uint64_t, 0x7ff0000000000000, 0x4000000000000000>();
    case DType::F32:
      return as.template operator()<std::uint32_t, 0x7f800000, 0x40000000>();
    case DType::F16:
      return as.template operator()<std::uint16_t, 0x7c00, 0x4000>();
    case DType::BF16:
      return as.template operator()<std::uint16_t, 0x7f80, 0x4000>();
    case DType::F8E4M3:
      return as.template operator()<std::uint8_t, 0x7f, 0x40>();
    case DType::F8E5M2:
      return as.template operator()<std::uint8_t, 0x7c, 0x40>();
    case DType::I64:
      return as.template operator()<std::uint64_t, 0, 0>();
    case DType::I32:
      return as.template operator()<std::uint32_t, 0, 0>();
    case DType::I16:
      return as.template operator()<std::uint16_t, 0, 0>();
    case DType::I8:
    case DType::U8:
      return as.template operator()<std::uint8_t, 0, 0>();
    case DType::Bool:
      return visit([raw](std::int64_t index) {
        return static_cast<std::uint8_t>(raw(static_cast<std::uint64_t>(index)) & 1);
      });
    case DType::C64:
      return visit([raw](std::int64_t index) {
        return finite_pair(raw(static_cast<std::uint64_t>(index)));
      });
  }
}

template <class Visit>
void Pattern::visit_sum(std::int64_t addend, Visit&& visit) const {
  SumTerms terms(addend, largest_, spacing_);
  std::int64_t unit = unit_;
  switch (dtype_) {
    case DType::F64:
      return visit([=](std::int64_t index) {
        return std::bit_cast<std::uint64_t>(static_cast<double>(terms.real(index) * unit));
      });
    case DType::F32:
      return visit([=](std::int64_t index) {
        return std::bit_cast<std::uint32_t>(static_cast<float>(terms.real(index) * unit));
      });
    case DType::F16:
      return visit([=](std::int64_t index) {
        return half_bits(static_cast<float>(terms.real(index) * unit));
      });
    case DType::BF16:
      return visit([=](std::int64_t index) {
        return brain_bits(static_cast<float>(terms.real(index) * unit));
      });
    case DType::C64:
      return visit([=](std::int64_t index) {
        std::uint64_t imaginary =
            std::bit_cast<std::uint32_t>(static_cast<float>(terms.imaginary(index) * unit));
        return imaginary << 32 |
               std::bit_cast<std::uint32_t>(static_cast<float>(terms.real(index) * unit));
      });
    default:
      RESHARD_CHECK(false, "no exact sum pattern for this dtype");
  }
}

template <class Visit>
void Pattern::visit_product(std::int64_t addend, Visit&& visit) const {
  auto term = [addend, largest = largest_, spacing = spacing_,
               addends = addends_](std::int64_t index) {
    return product_term(index, addend, largest, spacing, addends);
  };
  switch (dtype_) {
    case DType::F64:
      return visit([=](std::int64_t index) { return product_bits<F64Fields>(term(index)); });
    case DType::F32:
      return visit([=](std::int64_t index) { return product_bits<F32Fields>(term(index)); });
    case DType::F16:
      return visit([=](std::int64_t index) { return product_bits<F16Fields>(term(index)); });
    case DType::BF16:
      return visit([=](std::int64_t index) { return product_bits<BF16Fields>(term(index)); });
    case DType::C64:
      return visit([=](std::int64_t index) { return complex_product_bits(term(index)); });
    default:
      RESHARD_CHECK(false, "no exact product pattern for this dtype");
  }
}

template <class Visit>
void Pattern::visit_values(std::int64_t addend, Visit&& visit) const {
  std::uint64_t salt = salt_of(addend), other = salt_of(addend + 1);
  switch (kind_) {
    case Kind::AnyBits:
      return visit_cut<false>(
          dtype_, [salt](std::uint64_t index) { return mix_of(index + salt); }, visit);
    case Kind::Extreme:
      return visit_cut<true>(
          dtype_, [salt](std::uint64_t index) { return mix_of(index + salt); }, visit);
    case Kind::BitsAnd:
      return visit_cut<false>(
          dtype_, [other](std::uint64_t index) { return mix_of(index) | mix_of(index + other); },
          visit);
    case Kind::BitsOr:
      return visit_cut<false>(
          dtype_, [other](std::uint64_t index) { return mix_of(index) & mix_of(index + other); },
          visit);
    case Kind::OddInteger:
      return visit_cut<false>(
          dtype_, [salt](std::uint64_t index) { return mix_of(index + salt) | 1; }, visit);
    case Kind::FloatSum:
      return visit_sum(addend, visit);
    case Kind::FloatProduct:
      return visit_product(addend, visit);
  }
}

}  // namespace reshard
