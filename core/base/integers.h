// SPDX-License-Identifier: BSD-3-Clause
// Exact integer arithmetic: 128-bit values, rounding divisions, overflow-checked products.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/errors.h"
#include "core/base/limits.h"

namespace reshard {

__extension__ typedef __int128 Int128;

// ceil(a / b) for a >= 0, b > 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}
constexpr Int128 ceil_div(Int128 a, Int128 b) { return a / b + (a % b != 0 ? 1 : 0); }

// a * b for a, b >= 0; nothing if it exceeds kMaxBytes.
constexpr std::optional<std::int64_t> checked_product(std::int64_t a, std::int64_t b) {
  if (a != 0 && b > kMaxBytes / a) return std::nullopt;
  return a * b;
}

// Adds `bytes` to `sum`, both at least 0. Throws InputError if the sum would exceed kMaxBytes.
inline void add_bytes(std::int64_t& sum, Int128 bytes) {
  if (bytes > kMaxBytes - sum)
    throw InputError("bytes: expected at most 2^62 over all ranks and steps, found more");
  sum += static_cast<std::int64_t>(bytes);
}

// Picoseconds that `bytes` (>= 0) take at `bytes_per_s` (> 0), rounded up.
constexpr std::int64_t transfer_ps(Int128 bytes, Int128 bytes_per_s) {
  return static_cast<std::int64_t>(ceil_div(bytes * Int128{1'000'000'000'000}, bytes_per_s));
}

}  // namespace reshard
