// SPDX-License-Identifier: BSD-3-Clause
// Results of checks in the XML that CI systems show as tests (JUnit's).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/check/check_report.h"
#include "sim/report/comparison.h"

namespace reshard::sim {

struct JUnitCase {
  std::string name;
  std::vector<std::string> failures = {};  // none: passed
};

// A case for each tensor of the destination, and one for the findings that belong to no tensor.
std::vector<JUnitCase> junit_cases(const CheckReport& report);
// A case for each limit.
std::vector<JUnitCase> junit_cases(const std::vector<CheckedLimit>& limits);

std::string junit_xml(std::string_view suite, const std::vector<JUnitCase>& cases);

}  // namespace reshard::sim
