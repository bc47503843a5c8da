// SPDX-License-Identifier: BSD-3-Clause
// Pieces that several JSON reports share. Included by the report writers only: the JSON library
// stays out of other headers.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "core/bounds/bounds.h"
#include "sim/report/link_use.h"
#include "sim/report/run_report.h"
#include "sim/study/study_cache.h"

namespace reshard::sim {

using Json = nlohmann::ordered_json;

// An index, a list or null.
Json axis_json(const std::vector<int>& axes);
// [32, 8192, 4096] of "32,8192,4096"; [] of a 0-d tensor.
Json shape_json(const std::string& shape);
// What was asked for, in the words of the options.
Json request_json(const RunReport& report);
Json bound_json(const Bound& bound);
// A number with four decimals, or null.
Json ratio_json(std::optional<std::int64_t> ratio);
Json cache_json(const CacheStatistics& cache);
Json links_json(const std::vector<LinkUse>& links, std::int64_t end_ps);
Json classes_json(const std::vector<ClassBytes>& classes);
Json data_json(const DataFacts& data);

// Two-blank indentation, one newline at the end; text that is no UTF-8 is made so.
std::string written(const Json& json);

}  // namespace reshard::sim
