// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/json.h"

namespace reshard::sim {

Json decimal_json(std::optional<std::int64_t> value, double scale) {
  return value ? Json(static_cast<double>(*value) / scale) : Json(nullptr);
}

Json cache_json(const CacheStatistics& cache) {
  return {{"hits", cache.hits},
          {"misses", cache.misses},
          {"size", cache.size},
          {"capacity", cache.capacity}};
}

Json links_json(const std::vector<LinkUse>& links, std::int64_t end_ps, std::int64_t scale) {
  return list_json(links, [&](const LinkUse& link) {
    Json row = Json::object();  // not from braces, which copy every key and value: there are many
    row["name"] = link.name;
    row["bytes"] = link.bytes;
    row["busy_ps"] = link.busy_ps;
    row["utilisation"] = decimal_json(utilisation(link, end_ps, scale), static_cast<double>(scale));
    return row;
  });
}

Json classes_json(const std::vector<ClassUse>& classes) {
  Json out = Json::object();
  for (const ClassUse& use : classes) out[std::string(text(use.transport))] = use.bytes;
  return out;
}

void add_path(const std::optional<PathFacts>& path,
              const std::function<Json(const PathFacts::PathSpan&)>& start, Json& out) {
  if (!path) return;
  out["critical_path"] = nullptr;
  out["critical_causes"] = nullptr;
  if (!path->recorded) return;
  out["critical_path"] = list_json(path->parts, [&](const PathFacts::PathSpan& part) {
    Json row = start(part);
    row["step"] = part.step < 0 ? Json(nullptr) : Json(part.step);
    row["cause"] = part.cause;
    row["start_ps"] = part.start_ps;
    row["end_ps"] = part.end_ps;
    return row;
  });
  out["critical_causes"] = list_json(path->causes, [](const PathFacts::Cause& cause) -> Json {
    return {{"cause", cause.name}, {"time_ps", cause.time_ps}};
  });
}

void add_phases(const std::vector<PhaseTime>& phases, Json& out) {
  if (!phases.empty())
    out["phases"] = list_json(phases, [](const PhaseTime& phase) -> Json {
      return {{"name", phase.name}, {"time_ps", phase.time_ps}};
    });
}

}  // namespace reshard::sim
