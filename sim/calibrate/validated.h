// SPDX-License-Identifier: BSD-3-Clause
// What `reshard validate --backend nccl --json` measured, as rows of measured collectives: where
// the plan is one collective over all ranks of the request, or one exchange that is an all_to_all,
// beside copies within ranks.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sim/calibrate/measured.h"

namespace reshard::sim {

bool is_validated(const nlohmann::json& whole);  // by its schema
// At most one row, of the median; a plan of another kind is passed over. Throws InputError for
// another backend, whose times are not NCCL's, and for what is no such report.
MeasuredTable parse_validated(const nlohmann::json& whole, const std::string& file);

}  // namespace reshard::sim
