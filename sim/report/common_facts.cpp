// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/common_facts.h"

#include "core/base/units.h"
#include "sim/report/report.h"
#include "sim/report/time_tables.h"

namespace reshard::sim {

std::string ratio_of(std::int64_t time_ps, std::int64_t to_ps) {
  return ratio_text(ratio_e4(time_ps, to_ps));
}

void add_cache(const std::optional<CacheStatistics>& cache, Facts& facts) {
  if (cache)
    facts.add("plan cache",
              fmt::format("{}, {} missed, {} of {} entries", counted(cache->hits, "hit"),
                          cache->misses, cache->size, cache->capacity));
}

void add_classes(const std::vector<ClassUse>& classes, bool with_flows, Facts& facts) {
  std::string out = joined(classes, ", ", [&](const ClassUse& use) {
    std::string out = fmt::format("{} {}", text(use.transport), bytes_text(use.bytes));
    return with_flows ? fmt::format("{} in {} flows", out, use.flows) : out;
  });
  if (!out.empty()) facts.add("by link class", out);
}

void add_path(const std::optional<PathFacts>& path, Facts& facts) {
  if (path && !path_sentence(*path).empty()) facts.add("critical path", path_sentence(*path));
}

void add_phases(const std::vector<PhaseTime>& phases, Facts& facts) {
  if (!phases.empty()) facts.add("phases", text(phases));
}

void add_transport(std::string_view transport, std::int64_t time_ps, std::int64_t ideal_time_ps,
                   Facts& facts) {
  if (transport == text(TransportKind::Ideal) || time_ps == 0) return;
  std::int64_t more_ps = time_ps - ideal_time_ps;
  facts.add("transport", fmt::format("{}: {} {} than links alone, {}", transport,
                                     duration_text(more_ps < 0 ? -more_ps : more_ps),
                                     more_ps < 0 ? "less" : "more", duration_text(ideal_time_ps)));
}

}  // namespace reshard::sim
