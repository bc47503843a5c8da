// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/json_parts.h"

namespace reshard::sim {

Json axis_json(const std::vector<int>& axes) {
  if (axes.empty()) return nullptr;
  if (axes.size() == 1) return axes.front();
  return axes;
}

Json shape_json(const std::string& shape) {
  Json out = Json::array();
  for (std::int64_t extent : parse_shape(shape)) out.push_back(extent);
  return out;
}

Json request_json(const RunReport& report) {
  Json out;
  out["text"] = report.request;
  out["shape"] = shape_json(report.shape);
  out["dtype"] = report.dtype;
  out["mesh"] = report.mesh;
  out["ranks"] = report.ranks;
  out["from"] = report.from;
  out["to_mesh"] = report.to_mesh;
  out["to_ranks"] = report.to_ranks;
  out["to"] = report.to;
  return out;
}

Json bound_json(const Bound& bound) {
  Json out;
  out["cut_ps"] = bound.cut_ps;
  out["volume_ps"] = bound.volume_ps;
  out["latency_ps"] = bound.latency_ps;
  out["time_ps"] = bound.time_ps();
  out["limited_by"] = text(bound.limited_by());
  return out;
}

Json ratio_json(std::optional<std::int64_t> ratio) {
  if (!ratio) return nullptr;
  // The nearest double of a four-decimal number prints as those decimals again.
  return static_cast<double>(*ratio) / 10'000.0;
}

Json cache_json(const CacheStatistics& cache) {
  Json out;
  out["hits"] = cache.hits;
  out["misses"] = cache.misses;
  out["size"] = cache.size;
  out["capacity"] = cache.capacity;
  return out;
}

Json links_json(const std::vector<LinkUse>& links, std::int64_t end_ps) {
  Json out = Json::array();
  for (const LinkUse& link : links) {
    Json row;
    row["name"] = link.name;
    row["bytes"] = link.bytes;
    row["busy_ps"] = link.busy_ps;
    row["utilisation"] = ratio_json(utilisation_e4(link, end_ps));
    out.push_back(std::move(row));
  }
  return out;
}

Json classes_json(const std::vector<ClassBytes>& classes) {
  Json out = Json::object();
  for (const ClassBytes& entry : classes) out[std::string(text(entry.transport))] = entry.bytes;
  return out;
}

Json data_json(const DataFacts& data) {
  Json out;
  out["checked"] = data.checked;
  out["shape"] = shape_json(data.shape);
  out["elements"] = data.elements;
  out["digest"] = data.digest ? Json(*data.digest) : Json(nullptr);
  out["full_size"] = data.full_size;
  return out;
}

std::string written(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace reshard::sim
