// SPDX-License-Identifier: BSD-3-Clause
// Writes where digests differ, as text and JSON.
#pragma once

#include <cstddef>
#include <string>

#include "sim/digest/compare.h"

namespace reshard::sim {

struct DigestReport {
  std::string expected, wrote;  // names of files
  const ModelLayouts* layouts;
  DigestComparison comparison;
};

// "3 findings", or "equal".
std::string verdict(const DigestReport& report);
// Shows at most `rows` findings.
std::string digest_text(const DigestReport& report, std::size_t rows, std::size_t width);
std::string digest_json(const DigestReport& report);

}  // namespace reshard::sim
