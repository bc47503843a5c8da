// SPDX-License-Identifier: BSD-3-Clause
// Parts of JSON that several reports share.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sim/report/json.h"
#include "sim/study/run_facts.h"
#include "sim/study/study.h"

namespace reshard::sim {

// A number with log10(scale) decimals: the nearest double prints as those again.
Json decimal_json(std::optional<std::int64_t> value, double scale = 10'000.0);

Json cache_json(const CacheStatistics& cache);
Json links_json(const std::vector<LinkUse>& links, std::int64_t end_ps, std::int64_t scale);
Json classes_json(const std::vector<ClassUse>& classes);

// "critical_path" and "critical_causes". Without a path nobody asked; null where there is none.
// `start` begins the row of a part.
void add_path(const std::optional<PathFacts>& path,
              const std::function<Json(const PathFacts::Part&)>& start, Json& out);
// "phases", where there are any.
void add_phases(const std::vector<PhaseTime>& phases, Json& out);

}  // namespace reshard::sim
