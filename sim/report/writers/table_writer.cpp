// SPDX-License-Identifier: BSD-3-Clause
// Tables of the reports on plans and their runs.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "core/base/units.h"
#include "core/torch/cost_model.h"
#include "sim/report/facts.h"
#include "sim/report/ratios.h"
#include "sim/report/run_report.h"
#include "sim/report/table.h"
#include "sim/report/time_tables.h"
#include "sim/report/validate_report.h"
#include "sim/report/writers/job_writer.h"
#include "sim/report/writers/stage_writer.h"

namespace reshard::sim {

namespace {

constexpr const char* kProof = "every destination element, from index sets";
constexpr const char* kNoSteps = "no steps: nothing has to be done\n";

// A long list of ranks would push the other columns off the screen.
void add_head(const RunReport& report, Facts& facts) {
  if (report.kv)
    for (auto& [name, text] : kv_lines(*report.kv)) facts.add(name, text);
  const char* name = "request";
  for (std::string& line : request_lines(report))
    facts.add(std::exchange(name, ""), std::move(line));
  facts.add("topology", fmt::format("{} ({} of {} devices)", report.topology, report.ranks.size(),
                                    report.topology_devices));
  for (const std::string& assumed : report.assumed) facts.add("assumed", assumed);
  facts.add("planner",
            report.planner == report.planner_asked
                ? report.planner
                : fmt::format("{}, which chose {}", report.planner_asked, report.planner));
}

// Pipelines have hundreds of steps. Of more than kManySteps, only kStepsShown are shown, and
// reasons are grouped.
constexpr std::size_t kManySteps = 40, kStepsShown = 24;
bool has_many_steps(const RunReport& report, bool verbose) {
  return report.steps.size() > kManySteps && !verbose;
}

std::string step_table(const RunReport& report, bool verbose, std::size_t width) {
  if (report.steps.empty()) return kNoSteps;
  Table table({">step", "kind", "axis", "ranks", ">bytes", ">start", ">end"});
  std::size_t shown = has_many_steps(report, verbose) ? kStepsShown : report.steps.size();
  for (std::size_t s = 0; s < shown; ++s) {
    const StepRow& step = report.steps[s];
    std::string axes = joined(step.axes, ",", [](int axis) { return std::to_string(axis); });
    table.add_row({std::to_string(s), std::string(step.kind), axes.empty() ? "-" : axes,
                   short_list(ranks_text(step.ranks)), bytes_text(step.bytes),
                   time_text(step.start_ps), time_text(step.end_ps)});
  }
  std::string rest =
      shown == report.steps.size()
          ? ""
          : fmt::format("(and {} more; -v shows every step)\n", report.steps.size() - shown);
  return table.text(width) + rest;
}

// One row per distinct first reason: how many steps have it, and the first of them.
std::string grouped_reasons_table(const RunReport& report, std::size_t width) {
  struct Group {
    std::string why;
    std::size_t first, steps;
  };
  std::vector<Group> groups;
  for (std::size_t s = 0; s < report.steps.size(); ++s) {
    std::string why = report.steps[s].why.empty() ? "" : report.steps[s].why.front();
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const Group& each) { return each.why == why; });
    if (group == groups.end()) group = groups.insert(group, {why, s, 0});
    ++group->steps;
  }
  Table table({">steps", ">first", "why"});
  for (const Group& group : groups)
    table.add_row({std::to_string(group.steps), std::to_string(group.first), group.why});
  return fmt::format("\n{}", table.text(width));
}

std::string reasons_table(const RunReport& report, bool verbose, std::size_t width) {
  if (report.steps.empty()) return {};
  if (has_many_steps(report, verbose)) return grouped_reasons_table(report, width);
  Table table({">step", "why"});
  for (std::size_t s = 0; s < report.steps.size(); ++s)
    table.add_row({std::to_string(s), joined(report.steps[s].why, "; ",
                                             [](const std::string& reason) { return reason; })});
  return fmt::format("\n{}", table.text(width));
}

std::string path_tables(const RunReport& report, std::size_t width) {
  if (!report.path) return {};
  return path_tables(
      *report.path, ">step",
      [](const PathFacts::PathSpan& part) { return std::to_string(part.step); }, width);
}

void add_bytes(const RunReport& report, Facts& facts) {
  facts.add("received",
            fmt::format("at most {} per rank, {} in total, {} of it padding",
                        bytes_text(report.bytes.received_max),
                        bytes_text(report.bytes.received_total), bytes_text(report.padding_total)));
  facts.add("peak memory",
            fmt::format("{} on the fullest rank{}", bytes_text(report.bytes.peak_max),
                        report.frees_sources ? ", sources freed once sent" : ""));
  if (report.needs.extra_bytes > 0)
    facts.add("extra memory",
              fmt::format("at most {} per rank beyond source and destination, packed messages "
                          "included",
                          bytes_text(report.needs.extra_bytes)));
  add_classes(report.classes, false, facts);
  if (report.streams > 1)
    facts.add("streams",
              fmt::format("{}, each with communicators of its own, so that steps on different ones "
                          "overlap",
                          report.streams));
  facts.add("proof", kProof);
}

void add_bandwidths(const RunReport& report, std::int64_t time_ps, Facts& facts) {
  Bandwidths found = bandwidths_of(report, time_ps);
  if (found.algorithm_bytes_per_s)
    facts.add("bandwidth",
              fmt::format("algbw {}, busbw {}", rate_text(*found.algorithm_bytes_per_s),
                          rate_text(*found.bus_bytes_per_s)));
}

std::string kinds_table(const RunReport& report, bool verbose, std::size_t width) {
  return report.job ? groups_table(report.job->facts.kinds, "kind", verbose, width) : "";
}

void add_times(const RunReport& report, Facts& facts) {
  const Bound& bound = report.bound;
  facts.add("time", duration_text(report.time_ps));
  if (report.first_use) {
    const CommunicatorUse& use = *report.first_use;
    facts.add("first use",
              fmt::format("{} more: {} created in {}, {} connected in {}, {} held",
                          duration_text(use.first_use_ps()), counted(use.created, "communicator"),
                          duration_text(use.making_ps), counted(use.connected, "pair"),
                          duration_text(use.connecting_ps), bytes_text(use.bytes)));
  }
  add_transport(report.transport, report.time_ps, report.ideal_time_ps, facts);
  facts.add("bound",
            fmt::format("{} (cut {}, volume {}, price {}, holder {}, latency {}{}; limited by {})",
                        duration_text(bound.time_ps()), duration_text(bound.cut_ps),
                        duration_text(bound.volume_ps), duration_text(bound.price_ps),
                        duration_text(bound.holder_ps), duration_text(bound.latency_ps),
                        report.stages.empty() ? "" : ", order " + duration_text(bound.order_ps),
                        text(bound.limited_by())));
  facts.add("ratio to bound", ratio_of(report.time_ps, bound.time_ps()));
  if (report.job) add_limits(report.job->facts, report.job->lost, report.time_ps, facts);
  if (report.as_one)
    facts.add("as one job",
              fmt::format("{} by {} instead of {}", duration_text(report.as_one->time_ps),
                          report.as_one->planner, duration_text(report.time_ps)));
  add_bandwidths(report, report.time_ps, facts);
}

std::string data_text(const DataReport& data) {
  if (!data.checked) return "not moved: " + data.note;
  std::string out = fmt::format(
      "{} elements{}, {}", data.elements, data.shape ? " [" + text(*data.shape) + "]" : "",
      data.full_size ? "full size" : "reduced size (full size is above the data budget)");
  return data.digest ? out + ", digest " + data.digest->hex() : out;
}

// Consecutive ranks with the same figures share one row.
std::string rank_table(const RunReport& report, std::size_t width) {
  const std::vector<std::int64_t>&received = report.bytes.received_per_slot,
        &peak = report.bytes.peak_per_slot;
  Table table({"ranks", ">received", ">peak memory"});
  std::size_t count = report.ranks.size();
  for (std::size_t i = 0, j = 0; i < count; i = j) {
    std::vector<Rank> equal;
    for (; j < count && received[j] == received[i] && peak[j] == peak[i]; ++j)
      equal.push_back(report.ranks[j]);
    table.add_row({short_list(ranks_text(equal)), bytes_text(received[i]), bytes_text(peak[i])});
  }
  return fmt::format("\n{}", table.text(width));
}

bool is_any(const ShardFacts&) { return true; }
bool is_wrong(const ShardFacts& shard) { return shard.wrong.has_value(); }

std::string values_text(const ValueFacts& values) {
  if (values.wrong() > 0)
    return fmt::format("WRONG: {} of {} elements, on {} of {} ranks", values.wrong(),
                       values.elements(), values.ranks_where(is_wrong), values.ranks_where(is_any));
  if (values.unlike_store() > 0) return "each as the request defines it, but not as in the store";
  return fmt::format("{} elements on {} ranks, each as the request defines it", values.elements(),
                     values.ranks_where(is_any));
}

std::string store_text(const ValueFacts& values) {
  if (!values.store_ran) return "not run: " + values.note;
  if (values.unlike_store() == 0)
    return fmt::format("the same bytes on all {} ranks", values.ranks_where(is_any));
  return fmt::format("OTHER BYTES on {} of {} ranks",
                     values.ranks_where(&ShardFacts::differs_from_store),
                     values.ranks_where(is_any));
}

// min / median .. max / median.
std::string spread_text(const Spread& spread) {
  if (spread.median_ps == 0) return "-";
  return fmt::format("{:.2f}..{:.2f}",
                     static_cast<double>(spread.min_ps) / static_cast<double>(spread.median_ps),
                     static_cast<double>(spread.max_ps) / static_cast<double>(spread.median_ps));
}

std::string measured_step_table(const ValidateReport& report, std::size_t width) {
  const RunReport& predicted = report.predicted;
  if (predicted.steps.empty()) return kNoSteps;
  Table table({">step", "kind", "ranks", ">bytes", ">predicted", ">measured", ">spread", ">ratio"});
  auto add = [&](const std::string& number, std::string_view kind, const std::string& ranks,
                 std::int64_t bytes, std::optional<std::int64_t> predicted_ps,
                 const std::optional<Spread>& spread) {
    table.add_row({number, std::string(kind), ranks, bytes_text(bytes), time_text(predicted_ps),
                   spread ? duration_text(spread->median_ps) : "-",
                   spread ? spread_text(*spread) : "-",
                   spread && predicted_ps ? ratio_of(spread->median_ps, *predicted_ps) : "-"});
  };
  for (std::size_t s = 0; s < predicted.steps.size(); ++s) {
    const StepRow& step = predicted.steps[s];
    add(std::to_string(s), step.kind, short_list(ranks_text(step.ranks)), step.bytes,
        step.duration_ps(), report.measured.steps[s]);
  }
  add("all", "", "", predicted.bytes.received_total, predicted.time_ps, report.measured.total);
  return table.text(width);
}

std::string speed_text(const RunReport& report, std::int64_t time_ps) {
  std::int64_t rate = bandwidths_of(report, time_ps).bus_bytes_per_s.value_or(0);
  std::string out = duration_text(time_ps);
  if (rate == 0) return out;
  return fmt::format("{}, {} into the fullest rank ({})", out, rate_text(rate),
                     bytes_text(report.bytes.received_max));
}

std::string backend_text(const ValidateReport& report) {
  std::string where =
      fmt::format("{} process{}", report.processes, report.processes == 1 ? "" : "es");
  if (report.hosts > 1) where += fmt::format(" on {} hosts", report.hosts);
  return fmt::format("{}: {}; {}", report.backend, report.library, where);
}

std::string shard_table(const ValueFacts& values, std::size_t width) {
  bool several = !values.shards.empty() && values.shards.back().tensor != TensorId{0};
  std::vector<std::string> head{">rank", ">elements", "digest", "store's digest"};
  if (several) head.insert(head.begin(), ">tensor");
  Table table(head);
  for (const ShardFacts& shard : values.shards) {
    std::vector<std::string> row{std::to_string(to_int(shard.rank)), std::to_string(shard.elements),
                                 shard.digest.hex(), shard.expected ? shard.expected->hex() : "-"};
    if (several) row.insert(row.begin(), std::to_string(to_index(shard.tensor)));
    table.add_row(std::move(row));
  }
  return fmt::format("\n{}", table.text(width));
}

}  // namespace

std::string result_table(const RunReport& report, bool verbose, std::size_t width) {
  Facts facts;
  add_bytes(report, facts);
  if (report.data) facts.add("data checked", data_text(*report.data));
  add_times(report, facts);
  if (verbose) add_path(report.path, facts);
  if (verbose) add_cache(report.cache, facts);
  add_phases(report.phases, facts);
  return facts.text(width) + link_table(report.links, report.time_ps, 10'000, width) +
         (verbose ? path_tables(report, width) : "");
}

std::string simulate_table(const RunReport& report, bool verbose, std::size_t width) {
  Facts head;
  add_head(report, head);
  return head.text(width) + kinds_table(report, verbose, width) + "\n" +
         step_table(report, verbose, width) + stage_table(report.stages, verbose, width) + "\n" +
         result_table(report, verbose, width);
}

std::string plan_table(const RunReport& report, bool explain, bool verbose, std::size_t width) {
  Facts head, facts;
  add_head(report, head);
  if (explain)
    for (const std::string& reason : report.why) head.add("why", reason);
  add_bytes(report, facts);
  add_times(report, facts);
  if (explain || verbose) add_path(report.path, facts);
  facts.add(
      "PyTorch's cost",
      report.torch_cost_us
          ? fmt::format("{:.3f} us by the model of PyTorch {}, for the steps of its {} planner",
                        *report.torch_cost_us, kTorchVersion, report.torch_planner)
          : fmt::format("n/a: PyTorch {} has no plan of finite cost for this request",
                        kTorchVersion));
  if (explain)
    for (const TorchDefect& defect : report.torch_defects)
      facts.add("PyTorch's defect", fmt::format("#{}: {}", defect.issue, defect.what));
  if (verbose) add_cache(report.cache, facts);
  add_phases(report.phases, facts);
  return head.text(width) + kinds_table(report, verbose, width) + "\n" +
         step_table(report, verbose, width) + stage_table(report.stages, verbose, width) +
         (explain ? reasons_table(report, verbose, width) : "") + "\n" + facts.text(width) +
         rank_table(report, width) + (explain || verbose ? path_tables(report, width) : "");
}

std::string validate_table(const ValidateReport& report, bool verbose, std::size_t width) {
  const RunReport& predicted = report.predicted;
  const ValueFacts& values = report.values;
  std::int64_t median_ps = report.measured.total.median_ps;
  Facts head, facts;
  add_head(predicted, head);
  head.add("backend", backend_text(report));
  facts.add("proof", kProof);
  facts.add("values", values_text(values));
  if (report.sums_in_own_order)
    facts.add("", "the library chooses the order of sums; the inputs make them exact in any order");
  facts.add("store", store_text(values));
  facts.add(values.digest ? "digest" : "digest of digests",
            values.digest.value_or(values.digest_of_digests()).hex());
  facts.add("measured",
            fmt::format("{}; median of {} run{} after {} warm-up", speed_text(predicted, median_ps),
                        report.iterations, report.iterations == 1 ? "" : "s", report.warm_up));
  facts.add("predicted", speed_text(predicted, predicted.time_ps));
  facts.add("ratio", ratio_of(median_ps, predicted.time_ps) + " measured to predicted");
  if (!report.models_this_machine)
    facts.add("", fmt::format("the prediction is for {}, not for the machine that ran the plan",
                              predicted.topology));
  add_bandwidths(predicted, median_ps, facts);
  add_phases(predicted.phases, facts);
  return head.text(width) + kinds_table(predicted, verbose, width) + "\n" +
         measured_step_table(report, width) + "\n" + facts.text(width) +
         (verbose ? shard_table(values, width) : "");
}

}  // namespace reshard::sim
