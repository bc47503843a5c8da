// SPDX-License-Identifier: BSD-3-Clause
// JSON of the reports. The order in which keys are written here is part of the schema.
#include <fmt/core.h>

#include "core/torch/cost_model.h"
#include "sim/report/json.h"
#include "sim/report/ratios.h"
#include "sim/report/run_report.h"
#include "sim/report/sweep_report.h"
#include "sim/report/validate_report.h"
#include "sim/report/writers/job_writer.h"
#include "sim/report/writers/stage_writer.h"

namespace reshard::sim {

namespace {

// An index, a list or null.
Json axis_json(const std::vector<int>& axes) {
  if (axes.empty()) return nullptr;
  if (axes.size() == 1) return axes.front();
  return axes;
}

// The request of one tensor, by the names of the command's options.
Json tensor_json(const Request& request) {
  const Mesh &from = request.source().mesh(), &to = request.destination().mesh();
  Json out = {{"text", request.text()},
              {"shape", values_json(request.shape())},
              {"dtype", text(request.dtype())},
              {"mesh", shape_text(from)},
              {"ranks", ranks_text(from.ranks())},
              {"from", request.source().placements_text()},
              {"to_mesh", shape_text(to)},
              {"to_ranks", ranks_text(to.ranks())},
              {"to", request.destination().placements_text()}};
  if (!request.name().empty()) out["name"] = request.name();
  return out;
}

// "request" for one tensor; for several it is null, and "tensors" lists them.
void add_request(const RunReport& report, Json& out) {
  bool alone = report.tensors.size() == 1;
  out["request"] = alone ? tensor_json(report.tensors.front()) : Json(nullptr);
  if (!alone) out["tensors"] = list_json(report.tensors, tensor_json);
}

Json bound_json(const RunReport& report) {
  const Bound& bound = report.bound;
  Json out = {{"cut_ps", bound.cut_ps},
              {"volume_ps", bound.volume_ps},
              {"price_ps", bound.price_ps},
              {"holder_ps", bound.holder_ps},
              {"latency_ps", bound.latency_ps}};
  if (!report.stages.empty()) out["order_ps"] = bound.order_ps;
  out["time_ps"] = bound.time_ps();
  out["limited_by"] = text(bound.limited_by());
  return out;
}

Json data_json(const DataReport& data) {
  return {{"checked", data.checked},
          {"shape", data.shape ? values_json(*data.shape) : Json(nullptr)},
          {"elements", data.elements},
          {"digest", digest_json(data.digest)},
          {"full_size", data.full_size}};
}

// The first fields of a step's row, before its times.
Json step_json(const StepRow& step) {
  return {{"kind", step.kind},
          {"axis", axis_json(step.axes)},
          {"ranks", ranks_text(step.ranks)},
          {"stream", step.stream},
          {"bytes", step.bytes}};
}

Json kv_side_json(const KvFacts::Side& side) {
  return {{"parallel", side.parallel}, {"ranks", side.ranks},        {"copies", side.copies},
          {"form", side.form},         {"block", side.block_tokens}, {"blocks", side.blocks},
          {"pool", side.pool}};
}

// "kv", of a KV cache.
void add_kv(const RunReport& report, Json& out) {
  if (!report.kv) return;
  const KvFacts& kv = *report.kv;
  out["kv"] = {
      {"cache", kv.cache},    {"tokens", kv.tokens},           {"token_bytes", kv.token_bytes},
      {"bytes", kv.bytes},    {"from", kv_side_json(kv.from)}, {"to", kv_side_json(kv.to)},
      {"assumed", kv.assumed}};
}

Json start(const RunReport& report, const char* schema) {
  Json out = {{"schema", schema}};
  add_kv(report, out);
  add_request(report, out);
  out["topology"] = report.topology;
  out["planner"] = report.planner_asked;
  out["plan_by"] = report.planner;
  if (!report.assumed.empty()) out["assumed"] = report.assumed;
  return out;
}

Json steps_json(const RunReport& report, bool reasons) {
  return list_json(report.steps, [&](const StepRow& step) {
    Json row = step_json(step);
    row["start_ps"] = or_null(step.start_ps);
    row["end_ps"] = or_null(step.end_ps);
    if (reasons) row["why"] = step.why;
    return row;
  });
}

void add_stages(const RunReport& report, Json& out) {
  if (!report.stages.empty()) out["stages"] = stages_json(report.stages);
}

void add_bandwidths(const RunReport& report, std::int64_t time_ps, Json& out) {
  Bandwidths found = bandwidths_of(report, time_ps);
  out["algbw_bytes_per_s"] = or_null(found.algorithm_bytes_per_s);
  out["busbw_bytes_per_s"] = or_null(found.bus_bytes_per_s);
}

// "first_use", with --cold.
void add_first_use(const RunReport& report, Json& out) {
  if (!report.first_use) return;
  const CommunicatorUse& use = *report.first_use;
  auto seconds = [](std::int64_t ps) { return static_cast<double>(ps) / 1e12; };
  out["first_use"] = {{"policy", text(use.policy)},
                      {"created", use.created},
                      {"seconds", seconds(use.making_ps)},
                      {"connected", use.connected},
                      {"first_use_seconds", seconds(use.connecting_ps)},
                      {"bytes", use.bytes},
                      {"cold_time_ps", report.time_ps + use.first_use_ps()}};
}

// "kinds" and what limits, of several tensors.
void add_job(const RunReport& report, Json& out) {
  if (!report.job) return;
  add_job(report.job->facts, report.time_ps, out);
  out["lost"] =
      report.job->lost.by == LostTime::By::Nothing ? Json(nullptr) : Json(text(report.job->lost));
}

void add_result(const RunReport& report, Json& out) {
  out["transport"] = report.transport;
  out["time_ps"] = report.time_ps;
  out["ideal_time_ps"] = report.ideal_time_ps;
  add_first_use(report, out);
  out["bytes_received_max"] = report.bytes.received_max;
  out["bytes_received_total"] = report.bytes.received_total;
  out["bytes_padding_total"] = report.padding_total;
  out["peak_bytes_max"] = report.bytes.peak_max;
  out["extra_bytes_max"] = report.needs.extra_bytes;
  out["needed_bytes_max"] = report.needs.bytes;
  out["bound"] = bound_json(report);
  out["ratio_to_bound"] = decimal_json(ratio_e4(report.time_ps, report.bound.time_ps()));
  if (report.as_one)
    out["as_one"] = {{"plan_by", report.as_one->planner}, {"time_ps", report.as_one->time_ps}};
  out["proof"] = true;  // unproved plans are never reported
  add_bandwidths(report, report.time_ps, out);
  add_job(report, out);
}

void add_links(const RunReport& report, Json& out) {
  out["bytes_by_class"] = classes_json(report.classes);
  out["links"] = links_json(report.links, report.time_ps, 10'000);
  add_path(
      report.path, [](const PathFacts::PathSpan&) { return Json::object(); }, out);
  if (report.cache) out["plan_cache"] = cache_json(*report.cache);
}

Json spread_json(const std::optional<Spread>& spread) {
  if (!spread) return nullptr;
  return {{"median", spread->median_ps}, {"min", spread->min_ps}, {"max", spread->max_ps}};
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

// "rank", preceded by "tensor" if there are several.
Json shard_json(const ValidateReport& report, const ShardFacts& shard) {
  Json out = Json::object();
  if (report.predicted.tensors.size() > 1) out["tensor"] = to_index(shard.tensor);
  out["rank"] = to_int(shard.rank);
  return out;
}

Json difference_json(const ValidateReport& report) {
  const ShardFacts* shard = report.values.first_wrong();
  if (shard == nullptr) return nullptr;
  const Request& request = report.predicted.tensors[shard->tensor];
  Json out = shard_json(report, *shard);
  out.update({{"index", values_json(index_at(shard->wrong->index, request.shape()))},
              {"expected", bits_text(shard->wrong->expected, request.dtype())},
              {"found", bits_text(shard->wrong->found, request.dtype())}});
  return out;
}

Json value_facts_json(const ValidateReport& report) {
  const ValueFacts& values = report.values;
  return {{"hold", values.hold()},
          {"elements", values.elements()},
          {"wrong", values.wrong()},
          {"first_difference", difference_json(report)},
          {"sums_ordered_by_library", report.sums_in_own_order},
          {"store_ran", values.store_ran},
          {"digest", digest_json(values.digest)},
          {"digest_of_digests", values.digest_of_digests().hex()},
          {"shards", list_json(values.shards, [&](const ShardFacts& shard) -> Json {
             Json row = shard_json(report, shard);
             row.update({{"elements", shard.elements},
                         {"wrong", shard.wrong ? shard.wrong->count : 0},
                         {"digest", shard.digest.hex()},
                         {"store_digest", digest_json(shard.expected)}});
             return row;
           })}};
}

Json summary_json(const SweepReport& report) {
  return list_json(summarize(report), [](const SweepSummary& entry) -> Json {
    const SweepRow* worst = entry.worst;
    return {{"mesh", entry.mesh},
            {"planner", entry.planner},
            {"pairs", entry.pairs},
            {"refused", entry.refused},
            {"at_bound", entry.at_bound},
            {"geometric_mean_ratio", decimal_json(entry.geometric_mean_e4)},
            {"worst_ratio", worst == nullptr
                                ? Json(nullptr)
                                : decimal_json(ratio_e4(*worst->time_ps, worst->bound_ps))},
            {"worst_pair", worst == nullptr ? Json(nullptr) : Json(pair_text(*worst))},
            {"lost", worst == nullptr || !worst->lost ? Json(nullptr) : Json(text(*worst->lost))}};
  });
}

}  // namespace

std::string simulate_json(const RunReport& report) {
  Json out = start(report, "reshard.simulate/1");
  add_stages(report, out);
  out["steps"] = steps_json(report, false);
  add_result(report, out);
  if (report.data) out["data"] = data_json(*report.data);
  add_links(report, out);
  add_phases(report.phases, out);
  return written(out);
}

std::string plan_json(const RunReport& report) {
  Json out = start(report, "reshard.plan/1");
  add_stages(report, out);
  out["steps"] = steps_json(report, true);
  out["why"] = report.why;
  add_result(report, out);
  out["torch_cost_us"] = or_null(report.torch_cost_us);
  out["torch_planner"] = report.torch_cost_us ? Json(report.torch_planner) : Json(nullptr);
  out["torch_version"] = kTorchVersion;
  out["torch_defects"] = list_json(report.torch_defects, [](const TorchDefect& defect) -> Json {
    return {{"issue", defect.issue}, {"what", defect.what}};
  });
  Json& ranks = out["ranks"] = Json::array();
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    Json& row = ranks.emplace_back(Json::object());
    row["rank"] = to_int(report.ranks[i]);
    row["bytes_received"] = report.bytes.received_per_slot[i];
    row["peak_bytes"] = report.bytes.peak_per_slot[i];
  }
  add_links(report, out);
  add_phases(report.phases, out);
  return written(out);
}

std::string validate_json(const ValidateReport& report) {
  const RunReport& predicted = report.predicted;
  std::int64_t median_ps = report.measured.total.median_ps;
  Json out = start(predicted, "reshard.validate/1");
  out["backend"] = {{"name", report.backend},
                    {"library", report.library},
                    {"processes", report.processes},
                    {"hosts", report.hosts}};
  out["iterations"] = report.iterations;
  out["warm_up"] = report.warm_up;
  add_stages(predicted, out);
  out["steps"] = measured_steps_json(report);
  out["predicted_ps"] = predicted.time_ps;
  out["measured_ps"] = spread_json(report.measured.total);
  out["ratio"] = decimal_json(ratio_e4(median_ps, predicted.time_ps));
  out["prediction_is_for_this_machine"] = report.models_this_machine;
  out["bytes_received_max"] = predicted.bytes.received_max;
  out["bytes_received_total"] = predicted.bytes.received_total;
  out["predicted_bytes_per_s"] =
      or_null(bandwidths_of(predicted, predicted.time_ps).bus_bytes_per_s);
  out["measured_bytes_per_s"] = or_null(bandwidths_of(predicted, median_ps).bus_bytes_per_s);
  add_bandwidths(predicted, median_ps, out);
  out["bound"] = bound_json(predicted);
  out["proof"] = true;  // unproved plans are never run
  add_job(predicted, out);
  out["values"] = value_facts_json(report);
  add_phases(predicted.phases, out);
  return written(out);
}

std::string sweep_json(const SweepReport& report) {
  Json out{{"schema", "reshard.sweep/1"},
           {"shape", values_json(report.shape)},
           {"dtype", text(report.dtype)},
           {"topology", report.topology},
           {"meshes", report.meshes},
           {"pairs", report.pairs},
           {"forbidden", report.forbidden},
           {"summary", summary_json(report)},
           {"rows", list_json(report.rows, [](const SweepRow& row) -> Json {
              Json out{{"mesh", row.mesh},
                       {"from", row.from},
                       {"to", row.to},
                       {"planner", row.planner},
                       {"time_ps", or_null(row.time_ps)},
                       {"bytes_received_max", or_null(row.bytes_received_max)},
                       {"bound_ps", row.bound_ps},
                       {"algbw_bytes_per_s", or_null(row.rates.algorithm_bytes_per_s)},
                       {"busbw_bytes_per_s", or_null(row.rates.bus_bytes_per_s)}};
              if (row.first_use_ps) out["first_use_ps"] = *row.first_use_ps;
              if (row.first_use_ps && row.planner == "p2p")
                out["won_back_after"] = or_null(row.won_back_after);
              return out;
            })}};
  add_phases(report.phases, out);
  return written(out);
}

}  // namespace reshard::sim
