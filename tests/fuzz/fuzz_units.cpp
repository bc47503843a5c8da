// SPDX-License-Identifier: BSD-3-Clause
// Bytes, rates and durations: within their ranges or refused.
#include "core/base/integers.h"
#include "core/base/units.h"
#include "tests/fuzz/fuzz_input.h"

using namespace reshard;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input = fuzz::text_of(data, size);
  fuzz::refused_or_fine([&] {
    std::int64_t bytes = parse_bytes(input, "bytes");
    if (bytes < 0 || bytes > kMaxBytes || bytes_text(bytes).empty())
      fuzz::broken("bytes out of range");
  });
  fuzz::refused_or_fine([&] {
    std::int64_t rate = parse_bytes_per_s(input, "rate");
    if (rate < 1 || rate > kMaxBytes || rate_text(rate).empty()) fuzz::broken("rate out of range");
  });
  return fuzz::refused_or_fine([&] {
    std::int64_t ps = parse_duration_ps(input, "duration");
    if (ps < 0 || ps > 1'000'000'000'000'000'000 || duration_text(ps).empty())
      fuzz::broken("duration out of range");
  });
}
