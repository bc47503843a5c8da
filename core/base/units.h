// SPDX-License-Identifier: BSD-3-Clause
// Quantities as text. Input is exact decimal, without floating point; output is short, for people.
// GB = 10^9, GiB = 2^30.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace reshard {

inline constexpr std::int64_t kPsPerSecond = 1'000'000'000'000;

// "8GiB", "64MiB", "1.5GB", "4096", "4096B", or one letter as in nccl-tests ("8G" = 8 GiB): 0 ..
// 2^62. Throws InputError.
std::int64_t parse_bytes(std::string_view text, std::string_view field);
// "450e9", "450GB/s", "6.887e9B/s": 1 .. 2^62 bytes per second. NaN, infinity, zero and negatives
// are InputErrors.
std::int64_t parse_bytes_per_s(std::string_view text, std::string_view field);
// "8us", "1.5ms", "20ns", "0ps", "2s"; only 0 may be given without a unit. 0 .. 10^18 ps. Throws
// InputError.
std::int64_t parse_duration_ps(std::string_view text, std::string_view field);

// A ratio such as "0.972" or "1", in millionths: ratios from 0 to 10^6, rounded to six decimals.
inline constexpr std::int64_t kRatioOne = 1'000'000;
std::int64_t parse_ratio(std::string_view text, std::string_view field);

// "1 rank", "2 ranks".
std::string counted(std::int64_t count, std::string_view what);

// For people, by fixed rules so that output is stable: three decimals of the largest unit in which
// the value is at least 1.
std::string bytes_text(std::int64_t bytes);       // "64.000 MiB", "17 B"
std::string duration_text(std::int64_t ps);       // "671.089 us", "0 ps"
std::string rate_text(std::int64_t bytes_per_s);  // "450.000 GB/s"
// value / unit with `decimals` digits, rounded half away from zero, computed in integers.
std::string decimal_text(std::int64_t value, std::int64_t unit, int decimals);

}  // namespace reshard
