// SPDX-License-Identifier: BSD-3-Clause
// Quantities in text: exact decimal in, no floating point; short forms out for people. GB = 10^9,
// GiB = 2^30.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace reshard {

inline constexpr std::int64_t kPsPerSecond = 1'000'000'000'000;

// "8GiB", "64MiB", "1.5GB", "4096", "4096B"; one bare letter as nccl-tests has it ("8G" = 8 GiB). 0
// .. 2^62. Throws InputError.
std::int64_t parse_bytes(std::string_view text, std::string_view field);
// "450e9", "450GB/s", "6.887e9B/s": 1 .. 2^62 bytes per second. NaN, infinity, zero and negatives
// are InputErrors.
std::int64_t parse_bytes_per_s(std::string_view text, std::string_view field);
// "8us", "1.5ms", "20ns", "0ps", "2s"; a unit is required unless the value is 0. 0 .. 10^18 ps.
// Throws InputError.
std::int64_t parse_duration_ps(std::string_view text, std::string_view field);

// Ratios in millionths: "0.972", "1". 0 .. 10^6 x one; digits behind the sixth are rounded.
inline constexpr std::int64_t kRatioOne = 1'000'000;
std::int64_t parse_ratio(std::string_view text, std::string_view field);

// "1 rank", "2 ranks".
std::string counted(std::int64_t count, std::string_view what);

// For people, fixed rules so that output is stable: three decimals of the largest unit that leaves
// a value of at least 1.
std::string bytes_text(std::int64_t bytes);       // "64.000 MiB", "17 B"
std::string duration_text(std::int64_t ps);       // "671.089 us", "0 ps"
std::string rate_text(std::int64_t bytes_per_s);  // "450.000 GB/s"
// value / unit with `decimals` digits, rounded half up, computed in integers.
std::string decimal_text(std::int64_t value, std::int64_t unit, int decimals);

}  // namespace reshard
