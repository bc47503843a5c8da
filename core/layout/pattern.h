// SPDX-License-Identifier: BSD-3-Clause
// What every element of a test tensor holds, so that misplaced data shows.
//
// Moved data: a fixed 64-bit mix of the row-major global index, cut to the dtype, made finite where it is floating. Data that a request folds or divides: small integers by index and addend,
// chosen so that every fold is exact in any order and every division exact (multiples of the divisor within the dtype's exact integers).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/layout/request.h"

namespace reshard {

// The 64-bit mix (splitmix64's finaliser) of a global index.
std::uint64_t mix(std::uint64_t index);

class Pattern {
 public:
  explicit Pattern(const Request& request);

  // Little-endian bits of the element `index` (row-major in the global shape) of addend `addend`; size_bytes(dtype) of them, in the low bits.
  // c64: real part low, imaginary part high.
  std::uint64_t source_bits(std::int64_t index, std::int64_t addend) const;
  // True where values are moved unchanged: then destination bits are source bits.
  bool moves_only() const { return moves_only_; }

  // Local shard of `layout`'s rank at `position`, dense row-major, holding addend `addend`. `bytes` has exactly its size.
  void fill(const Layout& layout, std::int32_t position, std::int64_t addend, std::span<std::byte> bytes) const;

 private:
  DType dtype_;
  bool moves_only_;
  ReduceOp op_;
  std::int64_t step_ = 1, choices_ = 1;  // addends are step * {0 .. choices-1}, signed where the dtype is
};

}  // namespace reshard
