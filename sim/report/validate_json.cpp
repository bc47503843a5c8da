// SPDX-License-Identifier: BSD-3-Clause
// JSON of a validation. Key order is the order of writing here and part of the schema.
#include <fmt/format.h>

#include "sim/report/json_parts.h"
#include "sim/report/validate_report.h"

namespace reshard::sim {

namespace {

Json spread_json(const std::optional<Spread>& spread) {
  if (!spread) return nullptr;
  Json out;
  out["median"] = spread->median_ps;
  out["min"] = spread->min_ps;
  out["max"] = spread->max_ps;
  return out;
}

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json steps_json(const ValidateReport& report) {
  Json out = Json::array();
  for (std::size_t s = 0; s < report.predicted.steps.size(); ++s) {
    const StepRow& step = report.predicted.steps[s];
    const std::optional<Spread>& measured = report.measured.steps[s];
    std::optional<std::int64_t> predicted;
    if (step.start_ps && step.end_ps) predicted = *step.end_ps - *step.start_ps;
    Json row;
    row["kind"] = step.kind;
    row["axis"] = axis_json(step.axes);
    row["ranks"] = step.ranks;
    row["bytes"] = step.bytes;
    row["predicted_ps"] = or_null(predicted);
    row["measured_ps"] = spread_json(measured);
    row["ratio"] = ratio_json(measured && predicted ? ratio_e4(measured->median_ps, *predicted)
                                                    : std::nullopt);
    out.push_back(std::move(row));
  }
  return out;
}

// The first wrong element, by rank.
Json difference_json(const ValidateReport& report) {
  Shape shape = parse_shape(report.predicted.shape);
  int width = static_cast<int>(size_bytes(parse_dtype(report.predicted.dtype))) * 2 + 2;
  for (const ShardFacts& shard : report.values.shards) {
    if (!shard.wrong) continue;
    Json out;
    out["rank"] = to_int(shard.rank);
    Json index = Json::array();
    for (std::int64_t at : index_at(shard.wrong->index, shape)) index.push_back(at);
    out["index"] = std::move(index);
    out["expected"] = fmt::format("{:#0{}x}", shard.wrong->expected, width);
    out["found"] = fmt::format("{:#0{}x}", shard.wrong->found, width);
    return out;
  }
  return nullptr;
}

Json values_json(const ValidateReport& report) {
  const ValueFacts& values = report.values;
  Json shards = Json::array();
  for (const ShardFacts& shard : values.shards) {
    Json row;
    row["rank"] = to_int(shard.rank);
    row["elements"] = shard.elements;
    row["wrong"] = shard.wrong ? shard.wrong->count : 0;
    row["digest"] = shard.digest.hex();
    row["store_digest"] = shard.expected ? Json(shard.expected->hex()) : Json(nullptr);
    shards.push_back(std::move(row));
  }
  Json out;
  out["hold"] = values.hold();
  out["elements"] = values.elements();
  out["wrong"] = values.wrong();
  out["first_difference"] = difference_json(report);
  out["sums_ordered_by_library"] = report.sums_in_own_order;
  out["store_ran"] = values.store_ran;
  out["digest"] = values.digest ? Json(values.digest->hex()) : Json(nullptr);
  out["digest_of_digests"] = digest_of_digests(values.shards).hex();
  out["shards"] = std::move(shards);
  return out;
}

Json backend_json(const ValidateReport& report) {
  Json out;
  out["name"] = report.backend;
  out["library"] = report.library;
  out["processes"] = report.processes;
  out["hosts"] = report.hosts;
  return out;
}

}  // namespace

std::string validate_json(const ValidateReport& report) {
  const RunReport& predicted = report.predicted;
  Json out;
  out["schema"] = "reshard.validate/1";
  out["request"] = request_json(predicted);
  out["topology"] = predicted.topology;
  out["planner"] = predicted.planner_asked;
  out["plan_by"] = predicted.planner;
  out["backend"] = backend_json(report);
  out["iterations"] = report.iterations;
  out["warm_up"] = report.warm_up;
  out["steps"] = steps_json(report);
  out["predicted_ps"] = predicted.time_ps;
  out["measured_ps"] = spread_json(report.measured.total);
  out["ratio"] = ratio_json(ratio_e4(report.measured.total.median_ps, predicted.time_ps));
  out["prediction_is_for_this_machine"] = report.models_this_machine;
  out["bytes_received_max"] = predicted.bytes_received_max;
  out["bytes_received_total"] = predicted.bytes_received_total;
  out["predicted_bytes_per_s"] = or_null(received_bytes_per_s(predicted, predicted.time_ps));
  out["measured_bytes_per_s"] =
      or_null(received_bytes_per_s(predicted, report.measured.total.median_ps));
  out["bound"] = bound_json(predicted.bound);
  out["proof"] = true;  // an unproved plan is never run
  out["values"] = values_json(report);
  return written(out);
}

}  // namespace reshard::sim
