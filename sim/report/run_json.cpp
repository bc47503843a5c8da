// SPDX-License-Identifier: BSD-3-Clause
// JSON of one plan. Key order is the order of writing here and part of the schema.
#include "core/torch/cost_model.h"
#include "sim/report/json_parts.h"
#include "sim/report/run_report.h"

namespace reshard::sim {

namespace {

Json steps_json(const RunReport& report, bool reasons) {
  Json out = Json::array();
  for (const StepRow& step : report.steps) {
    Json row;
    row["kind"] = step.kind;
    row["axis"] = axis_json(step.axes);
    row["ranks"] = step.ranks;
    row["bytes"] = step.bytes;
    row["start_ps"] = step.start_ps ? Json(*step.start_ps) : Json(nullptr);
    row["end_ps"] = step.end_ps ? Json(*step.end_ps) : Json(nullptr);
    if (reasons) row["why"] = step.why;
    out.push_back(std::move(row));
  }
  return out;
}

void add_result(const RunReport& report, Json& out) {
  out["time_ps"] = report.time_ps;
  out["bytes_received_max"] = report.bytes_received_max;
  out["bytes_received_total"] = report.bytes_received_total;
  out["bytes_padding_total"] = report.bytes_padding_total;
  out["peak_bytes_max"] = report.peak_bytes_max;
  out["bound"] = bound_json(report.bound);
  out["ratio_to_bound"] = ratio_json(ratio_e4(report.time_ps, report.bound.time_ps()));
  out["proof"] = true;  // an unproved plan never gets as far as a report
}

void add_links(const RunReport& report, Json& out) {
  out["bytes_by_class"] = classes_json(report.classes);
  out["links"] = links_json(report.links, report.time_ps);
  if (report.cache) out["plan_cache"] = cache_json(*report.cache);
}

Json start(const RunReport& report, const char* schema, bool reasons) {
  Json out;
  out["schema"] = schema;
  out["request"] = request_json(report);
  out["topology"] = report.topology;
  out["planner"] = report.planner_asked;
  out["plan_by"] = report.planner;
  out["steps"] = steps_json(report, reasons);
  return out;
}

}  // namespace

std::string simulate_json(const RunReport& report) {
  Json out = start(report, "reshard.simulate/1", false);
  add_result(report, out);
  if (report.data) out["data"] = data_json(*report.data);
  add_links(report, out);
  return written(out);
}

std::string plan_json(const RunReport& report) {
  Json out = start(report, "reshard.plan/1", true);
  out["why"] = report.why;
  add_result(report, out);
  out["torch_cost_us"] = report.torch_cost_us ? Json(*report.torch_cost_us) : Json(nullptr);
  out["torch_version"] = kTorchVersion;
  Json ranks = Json::array();
  for (std::size_t i = 0; i < report.rank_ids.size(); ++i) {
    Json row;
    row["rank"] = to_int(report.rank_ids[i]);
    row["bytes_received"] = report.received_by_rank[i];
    row["peak_bytes"] = report.peak_by_rank[i];
    ranks.push_back(std::move(row));
  }
  out["ranks"] = std::move(ranks);
  add_links(report, out);
  return written(out);
}

}  // namespace reshard::sim
