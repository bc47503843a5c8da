// SPDX-License-Identifier: BSD-3-Clause
// Reads a report of `reshard validate --backend nccl --json` as a measured collective, if the plan
// consists of copies within ranks and either one collective over all ranks of the request or one
// exchange that is an all_to_all.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sim/calibrate/measured.h"

namespace reshard::sim {

bool is_validated(const nlohmann::json& whole);  // by its schema
// At most one row, with the median time; other plans are skipped. Throws InputError if the backend
// is not NCCL or the JSON is not such a report.
MeasuredTable parse_validated(const nlohmann::json& whole, const std::string& file);

}  // namespace reshard::sim
