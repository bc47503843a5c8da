// SPDX-License-Identifier: BSD-3-Clause
// Lines of facts that several tables share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "sim/report/table.h"
#include "sim/study/run_facts.h"
#include "sim/study/study.h"

namespace reshard::sim {

template <class Values, class Text>
std::string joined(const Values& values, const char* separator, Text&& text_of) {
  std::string out;
  for (const auto& value : values)
    out += fmt::format("{}{}", out.empty() ? "" : separator, text_of(value));
  return out;
}

std::string ratio_of(std::int64_t time_ps, std::int64_t to_ps);

// Each adds nothing where there is nothing to say.
void add_cache(const std::optional<CacheStatistics>& cache, Facts& facts);
void add_classes(const std::vector<ClassUse>& classes, bool with_flows, Facts& facts);
void add_path(const std::optional<PathFacts>& path, Facts& facts);
void add_phases(const std::vector<PhaseTime>& phases, Facts& facts);
// What links cost and what the software that drives them does.
void add_transport(std::string_view transport, std::int64_t time_ps, std::int64_t ideal_time_ps,
                   Facts& facts);

}  // namespace reshard::sim
