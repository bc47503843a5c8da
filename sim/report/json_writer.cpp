// SPDX-License-Identifier: BSD-3-Clause
// JSON of the reports. Key order is the order of writing here and part of the schema.
#include <fmt/format.h>

#include "core/torch/cost_model.h"
#include "sim/report/json.h"
#include "sim/report/writers.h"

namespace reshard::sim {

namespace {

// An index, a list or null.
Json axis_json(const std::vector<int>& axes) {
  if (axes.empty()) return nullptr;
  if (axes.size() == 1) return axes.front();
  return axes;
}

Json values_json(const DimVector& values) {
  Json out = Json::array();
  for (std::int64_t value : values) out.push_back(value);
  return out;
}

// A number with `decimals` = log10(scale) decimals: the nearest double prints as those again.
Json decimal_json(std::optional<std::int64_t> value, double scale = 10'000.0) {
  return value ? Json(static_cast<double>(*value) / scale) : Json(nullptr);
}

// What was asked for, in the words of the options.
Json request_json(const Request& request) {
  const Mesh &from = request.source().mesh(), &to = request.destination().mesh();
  Json out;
  out["text"] = request.text();
  out["shape"] = values_json(request.shape());
  out["dtype"] = text(request.dtype());
  out["mesh"] = shape_text(from);
  out["ranks"] = ranks_text(from.ranks());
  out["from"] = request.source().placements_text();
  out["to_mesh"] = shape_text(to);
  out["to_ranks"] = ranks_text(to.ranks());
  out["to"] = request.destination().placements_text();
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

Json cache_json(const CacheStatistics& cache) {
  Json out;
  out["hits"] = cache.hits;
  out["misses"] = cache.misses;
  out["size"] = cache.size;
  out["capacity"] = cache.capacity;
  return out;
}

Json links_json(const std::vector<LinkUse>& links, std::int64_t end_ps, std::int64_t scale) {
  Json out = Json::array();
  for (const LinkUse& link : links) {
    Json row;
    row["name"] = link.name;
    row["bytes"] = link.bytes;
    row["busy_ps"] = link.busy_ps;
    row["utilisation"] = decimal_json(utilisation(link, end_ps, scale), static_cast<double>(scale));
    out.push_back(std::move(row));
  }
  return out;
}

Json classes_json(const std::vector<ClassUse>& classes) {
  Json out = Json::object();
  for (const ClassUse& use : classes) out[std::string(text(use.transport))] = use.bytes;
  return out;
}

Json data_json(const DataReport& data) {
  Json out;
  out["checked"] = data.checked;
  out["shape"] = values_json(data.shape);
  out["elements"] = data.elements;
  out["digest"] = digest_json(data.digest);
  out["full_size"] = data.full_size;
  return out;
}

// What steps are, before what they took.
Json step_json(const StepRow& step) {
  Json row;
  row["kind"] = step.kind;
  row["axis"] = axis_json(step.axes);
  row["ranks"] = ranks_text(step.ranks);
  row["bytes"] = step.bytes;
  return row;
}

Json start(const RunReport& report, const char* schema) {
  Json out;
  out["schema"] = schema;
  out["request"] = request_json(report.request);
  out["topology"] = report.topology;
  out["planner"] = report.planner_asked;
  out["plan_by"] = report.planner;
  return out;
}

Json steps_json(const RunReport& report, bool reasons) {
  Json out = Json::array();
  for (const StepRow& step : report.steps) {
    Json row = step_json(step);
    row["start_ps"] = or_null(step.start_ps);
    row["end_ps"] = or_null(step.end_ps);
    if (reasons) row["why"] = step.why;
    out.push_back(std::move(row));
  }
  return out;
}

void add_result(const RunReport& report, Json& out) {
  out["time_ps"] = report.time_ps;
  out["bytes_received_max"] = report.bytes.received_max;
  out["bytes_received_total"] = report.bytes.received_total;
  out["bytes_padding_total"] = report.padding_total;
  out["peak_bytes_max"] = report.bytes.peak_max;
  out["bound"] = bound_json(report.bound);
  out["ratio_to_bound"] = decimal_json(ratio_e4(report.time_ps, report.bound.time_ps()));
  out["proof"] = true;  // an unproved plan never gets as far as a report
}

void add_links(const RunReport& report, Json& out) {
  out["bytes_by_class"] = classes_json(report.classes);
  out["links"] = links_json(report.links, report.time_ps, 10'000);
  if (report.cache) out["plan_cache"] = cache_json(*report.cache);
}

Json spread_json(const std::optional<Spread>& spread) {
  if (!spread) return nullptr;
  Json out;
  out["median"] = spread->median_ps;
  out["min"] = spread->min_ps;
  out["max"] = spread->max_ps;
  return out;
}

Json measured_steps_json(const ValidateReport& report) {
  Json out = Json::array();
  for (std::size_t s = 0; s < report.predicted.steps.size(); ++s) {
    const StepRow& step = report.predicted.steps[s];
    const std::optional<Spread>& measured = report.measured.steps[s];
    std::optional<std::int64_t> predicted = step.duration_ps();
    Json row = step_json(step);
    row["predicted_ps"] = or_null(predicted);
    row["measured_ps"] = spread_json(measured);
    row["ratio"] = decimal_json(measured && predicted ? ratio_e4(measured->median_ps, *predicted)
                                                      : std::nullopt);
    out.push_back(std::move(row));
  }
  return out;
}

Json difference_json(const ValidateReport& report) {
  const ShardFacts* shard = report.values.first_wrong();
  if (shard == nullptr) return nullptr;
  const Request& request = report.predicted.request;
  int width = static_cast<int>(size_bytes(request.dtype())) * 2 + 2;
  Json out;
  out["rank"] = to_int(shard->rank);
  out["index"] = values_json(index_at(shard->wrong->index, request.shape()));
  out["expected"] = fmt::format("{:#0{}x}", shard->wrong->expected, width);
  out["found"] = fmt::format("{:#0{}x}", shard->wrong->found, width);
  return out;
}

Json value_facts_json(const ValidateReport& report) {
  const ValueFacts& values = report.values;
  Json shards = Json::array();
  for (const ShardFacts& shard : values.shards) {
    Json row;
    row["rank"] = to_int(shard.rank);
    row["elements"] = shard.elements;
    row["wrong"] = shard.wrong ? shard.wrong->count : 0;
    row["digest"] = shard.digest.hex();
    row["store_digest"] = digest_json(shard.expected);
    shards.push_back(std::move(row));
  }
  Json out;
  out["hold"] = values.hold();
  out["elements"] = values.elements();
  out["wrong"] = values.wrong();
  out["first_difference"] = difference_json(report);
  out["sums_ordered_by_library"] = report.sums_in_own_order;
  out["store_ran"] = values.store_ran;
  out["digest"] = digest_json(values.digest);
  out["digest_of_digests"] = values.digest_of_digests().hex();
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

Json rows_json(const std::vector<ReplayRow>& rows) {
  Json out = Json::array();
  for (const ReplayRow& row : rows) {
    Json line;
    line["line"] = row.line;
    line["op"] = row.op;
    line["id"] = or_null(row.id);
    line["name"] = or_null(row.name);
    line["text"] = row.text;
    line["planner"] = or_null(row.planner);
    line["start_ps"] = or_null(row.start_ps);
    line["end_ps"] = or_null(row.end_ps);
    line["bytes_received"] = row.bytes_received;
    line["bound_ps"] = row.bound_ps;
    out.push_back(std::move(line));
  }
  return out;
}

Json summary_json(const SweepReport& report) {
  Json out = Json::array();
  for (const SweepSummary& entry : summarize(report)) {
    const SweepRow* worst = entry.worst;
    Json row;
    row["planner"] = entry.planner;
    row["pairs"] = entry.pairs;
    row["refused"] = entry.refused;
    row["at_bound"] = entry.at_bound;
    row["geometric_mean_ratio"] = decimal_json(entry.geometric_mean_e4);
    row["worst_ratio"] =
        worst == nullptr ? Json(nullptr) : decimal_json(ratio_e4(*worst->time_ps, worst->bound_ps));
    row["worst_pair"] = worst == nullptr ? Json(nullptr) : Json(pair_text(*worst));
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace

std::string simulate_json(const RunReport& report) {
  Json out = start(report, "reshard.simulate/1");
  out["steps"] = steps_json(report, false);
  add_result(report, out);
  if (report.data) out["data"] = data_json(*report.data);
  add_links(report, out);
  return written(out);
}

std::string plan_json(const RunReport& report) {
  Json out = start(report, "reshard.plan/1");
  out["steps"] = steps_json(report, true);
  out["why"] = report.why;
  add_result(report, out);
  out["torch_cost_us"] = or_null(report.torch_cost_us);
  out["torch_version"] = kTorchVersion;
  Json ranks = Json::array();
  for (std::size_t i = 0; i < report.request.ranks().size(); ++i) {
    Json row;
    row["rank"] = to_int(report.request.ranks()[i]);
    row["bytes_received"] = report.bytes.received_per_slot[i];
    row["peak_bytes"] = report.bytes.peak_per_slot[i];
    ranks.push_back(std::move(row));
  }
  out["ranks"] = std::move(ranks);
  add_links(report, out);
  return written(out);
}

std::string validate_json(const ValidateReport& report) {
  const RunReport& predicted = report.predicted;
  std::int64_t median_ps = report.measured.total.median_ps;
  Json out = start(predicted, "reshard.validate/1");
  out["backend"] = backend_json(report);
  out["iterations"] = report.iterations;
  out["warm_up"] = report.warm_up;
  out["steps"] = measured_steps_json(report);
  out["predicted_ps"] = predicted.time_ps;
  out["measured_ps"] = spread_json(report.measured.total);
  out["ratio"] = decimal_json(ratio_e4(median_ps, predicted.time_ps));
  out["prediction_is_for_this_machine"] = report.models_this_machine;
  out["bytes_received_max"] = predicted.bytes.received_max;
  out["bytes_received_total"] = predicted.bytes.received_total;
  out["predicted_bytes_per_s"] = or_null(received_bytes_per_s(predicted, predicted.time_ps));
  out["measured_bytes_per_s"] = or_null(received_bytes_per_s(predicted, median_ps));
  out["bound"] = bound_json(predicted.bound);
  out["proof"] = true;  // an unproved plan is never run
  out["values"] = value_facts_json(report);
  return written(out);
}

std::string replay_json(const ReplayReport& report) {
  Json out;
  out["schema"] = "reshard.replay/1";
  out["trace"] = report.trace;
  out["topology"] = report.topology;
  out["operations"] = report.operations;
  out["time_ps"] = report.time_ps;
  out["bytes_received_total"] = report.bytes_received_total;
  Json bound;
  bound["path_ps"] = report.path_bound_ps;
  bound["cut_ps"] = report.cut_bound_ps;
  bound["time_ps"] = report.bound_ps;
  bound["limited_by"] = report.limited_by();
  out["bound"] = std::move(bound);
  out["ratio_to_bound"] = decimal_json(ratio_e4(report.time_ps, report.bound_ps));
  out["proof"] = true;  // an unproved plan never gets as far as a report
  Json data;
  data["checked"] = report.data_checked == report.different_requests;
  data["requests_different"] = report.different_requests;
  data["requests_checked"] = report.data_checked;
  data["requests_full_size"] = report.data_full_size;
  data["elements"] = report.elements_checked;
  data["budget_bytes"] = report.data_budget_bytes;
  out["data"] = std::move(data);
  out["requests"] = rows_json(report.requests);
  out["others"] = rows_json(report.others);
  out["links"] = links_json(report.links, report.time_ps, 1'000'000);
  out["bytes_by_class"] = classes_json(report.classes);
  out["plan_cache"] = report.cache ? cache_json(*report.cache) : Json(nullptr);
  out["digest"] = report.digest.hex();
  return written(out);
}

std::string sweep_json(const SweepReport& report) {
  Json out;
  out["schema"] = "reshard.sweep/1";
  out["shape"] = values_json(report.shape);
  out["dtype"] = text(report.dtype);
  out["topology"] = report.topology;
  out["meshes"] = report.meshes;
  out["pairs"] = report.pairs;
  out["forbidden"] = report.forbidden;
  out["summary"] = summary_json(report);
  Json rows = Json::array();
  for (const SweepRow& row : report.rows) {
    Json line;
    line["mesh"] = row.mesh;
    line["from"] = row.from;
    line["to"] = row.to;
    line["planner"] = row.planner;
    line["time_ps"] = or_null(row.time_ps);
    line["bytes_received_max"] = or_null(row.bytes_received_max);
    line["bound_ps"] = row.bound_ps;
    rows.push_back(std::move(line));
  }
  out["rows"] = std::move(rows);
  return written(out);
}

}  // namespace reshard::sim
