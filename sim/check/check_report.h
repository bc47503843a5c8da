// SPDX-License-Identifier: BSD-3-Clause
// What the judge found, as text and JSON.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/judge/fault_groups.h"
#include "sim/check/check_file.h"

namespace reshard::sim {

struct CheckReport {
  CheckedCopies copies;
  std::vector<Finding> findings;  // the largest first; none: proved
};

CheckReport report_of(CheckedCopies copies);
// "3 findings, 24 elements"; "proved".
std::string verdict(const CheckReport& report);
// At most `rows` findings.
std::string check_text(const CheckReport& report, std::size_t rows, std::size_t width);
std::string check_json(const CheckReport& report);

}  // namespace reshard::sim
