// SPDX-License-Identifier: BSD-3-Clause
// Units of what the product counts in picoseconds, bytes, and bytes per second.
#pragma once

#include <cstdint>

namespace reshard::test {

inline constexpr std::int64_t kUs = 1'000'000, kMs = 1000 * kUs;
inline constexpr std::int64_t kKiB = 1024, kMiB = 1024 * kKiB;
inline constexpr std::int64_t kGB = 1'000'000'000;  // at a GB/s a byte takes 1000 ps

}  // namespace reshard::test
