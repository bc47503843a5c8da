// SPDX-License-Identifier: BSD-3-Clause
// Turns studies, runs and sweep rows into reports.
#include "sim/report/report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/base/units.h"

namespace reshard::sim {

namespace {

constexpr std::size_t kLinksListed = 4096;

std::vector<StepRow> step_rows(const Plan& plan, const PlanBytes& bytes) {
  std::vector<StepRow> rows;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    StepRow row{
        kind_text(plan.steps[s]), plan.steps[s].axes, {}, bytes.received_per_step[s], {}, {}};
    for (Slot slot : slots_of(plan.steps[s])) row.ranks.push_back(plan.rank_of(slot));
    rows.push_back(std::move(row));
  }
  return rows;
}

// First start and last end of a step on any rank.
struct Extent {
  std::optional<std::int64_t> start_ps, end_ps;
};

IndexVector<std::int32_t, Extent> extents_of(const Timeline& timeline, std::size_t step_count) {
  IndexVector<std::int32_t, Extent> out(step_count);
  for (const Span& span : timeline.spans) {
    RESHARD_CHECK(
        span.step >= 0 && to_index(span.step) < step_count && span.start_ps <= span.end_ps,
        "a span of no step");
    Extent& extent = out[span.step];
    extent.start_ps = std::min(extent.start_ps.value_or(span.start_ps), span.start_ps);
    extent.end_ps = std::max(extent.end_ps.value_or(span.end_ps), span.end_ps);
  }
  return out;
}

void add_reasons(const Explanation& explanation, RunReport& report) {
  report.alternatives = explanation.alternatives();
  for (const Explanation::Line& line : explanation.lines()) {
    if (!line.step)
      report.why.push_back(line.why);
    else if (to_index(*line.step) < report.steps.size())
      report.steps[*line.step].why.push_back(line.why);
  }
}

// Rounded to four decimals: math libraries can differ in the last bit of a logarithm, which these
// digits do not show.
std::int64_t rounded_e4(double value) {
  return static_cast<std::int64_t>(std::floor(value * 10'000 + 0.5));
}

SweepSummary summarize(const SweepReport& report, const std::string& mesh,
                       const std::string& planner) {
  SweepSummary out;
  out.mesh = mesh;
  out.planner = planner;
  // A sum of logarithms, since a product of thousands of ratios could exceed the range of double.
  double logarithms = 0;
  for (const SweepRow& row : report.rows) {
    if (row.mesh != mesh || row.planner != planner) continue;
    if (!row.time_ps) ++out.refused;
    if (!row.time_ps || row.bound_ps == 0) continue;
    ++out.pairs;
    if (*row.time_ps == row.bound_ps) ++out.at_bound;
    logarithms +=
        std::log(static_cast<double>(*row.time_ps)) - std::log(static_cast<double>(row.bound_ps));
    if (out.worst == nullptr ||
        Int128{*row.time_ps} * out.worst->bound_ps > Int128{*out.worst->time_ps} * row.bound_ps)
      out.worst = &row;
  }
  if (out.pairs > 0)
    out.geometric_mean_e4 = rounded_e4(std::exp(logarithms / static_cast<double>(out.pairs)));
  return out;
}

}  // namespace

std::optional<std::int64_t> StepRow::duration_ps() const {
  if (!start_ps || !end_ps) return std::nullopt;
  return *end_ps - *start_ps;
}

std::vector<std::string> request_lines(const RunReport& report) {
  constexpr std::size_t kMostLines = 8;
  std::vector<std::string> out;
  for_each_tensor(report.tensors, [&](TensorId tensor, const Request& request) {
    if (out.size() == kMostLines) return;
    out.push_back((request.name().empty() ? "" : request.name() + ": ") +
                  tensor_text(report.tensors, tensor));
  });
  if (report.tensors.size() > kMostLines)
    out.push_back(fmt::format("and {} tensors more", report.tensors.size() - kMostLines));
  return out;
}

RunReport report_on(Study& study) {
  const Plan& plan = study.plan();
  const Timeline& timeline = study.timeline();
  RunReport report(plan);
  report.topology = study.topology().name();
  report.topology_devices = study.topology().devices();
  report.assumed = study.topology().node().assumed;
  report.planner = report.planner_asked = plan.planner;
  report.bytes = study.bytes();
  report.steps = step_rows(plan, report.bytes);
  IndexVector<std::int32_t, Extent> extents = extents_of(timeline, report.steps.size());
  for (std::size_t s = 0; s < extents.size(); ++s) {
    report.steps[s].start_ps = extents[s].start_ps;
    report.steps[s].end_ps = extents[s].end_ps;
  }
  if (study.explanation()) add_reasons(*study.explanation(), report);
  report.padding_total = study.padding_total();
  report.transport = text(study.transport());
  report.time_ps = study.time_ps();
  report.ideal_time_ps = study.ideal_time_ps();
  report.bound = study.bound();
  report.classes = use_by_class(timeline, study.topology());
  std::erase_if(report.classes, [](const ClassUse& use) { return use.bytes == 0; });
  report.links = busiest_links(timeline, study.topology(), kLinksListed);
  return report;
}

std::optional<std::int64_t> ratio_e4(std::int64_t time_ps, std::int64_t bound_ps) {
  if (bound_ps == 0) return std::nullopt;
  return static_cast<std::int64_t>((Int128{time_ps} * 20'000 + bound_ps) / (Int128{bound_ps} * 2));
}

Spread spread_of(std::vector<std::int64_t> values_ps) {
  RESHARD_CHECK(!values_ps.empty(), "the median of nothing");
  std::sort(values_ps.begin(), values_ps.end());
  return {values_ps[(values_ps.size() - 1) / 2], values_ps.front(), values_ps.back()};
}

MeasuredTimes times_of(std::span<const Timeline> runs, std::size_t step_count) {
  MeasuredTimes out;
  std::vector<std::int64_t> totals;
  std::vector<std::vector<std::int64_t>> by_step(step_count);
  for (const Timeline& run : runs) {
    totals.push_back(run.end_ps);
    IndexVector<std::int32_t, Extent> extents = extents_of(run, step_count);
    for (std::size_t s = 0; s < step_count; ++s)
      if (extents[s].end_ps) by_step[s].push_back(*extents[s].end_ps - *extents[s].start_ps);
  }
  out.total = spread_of(totals);
  out.median_run =
      to_index(std::find(totals.begin(), totals.end(), out.total.median_ps) - totals.begin());
  for (std::vector<std::int64_t>& values : by_step)
    out.steps.push_back(values.empty() ? std::nullopt
                                       : std::optional(spread_of(std::move(values))));
  return out;
}

std::int64_t ValueFacts::elements() const {
  std::int64_t sum = 0;
  for (const ShardFacts& shard : shards) sum += shard.elements;
  return sum;
}

std::int64_t ValueFacts::wrong() const {
  std::int64_t sum = 0;
  for (const ShardFacts& shard : shards) sum += shard.wrong ? shard.wrong->count : 0;
  return sum;
}

std::int64_t ValueFacts::unlike_store() const {
  return std::count_if(shards.begin(), shards.end(),
                       [](const ShardFacts& shard) { return shard.differs_from_store(); });
}

std::int64_t ValueFacts::ranks_where(const std::function<bool(const ShardFacts&)>& is_true) const {
  std::set<Rank> ranks;
  for (const ShardFacts& shard : shards)
    if (is_true(shard)) ranks.insert(shard.rank);
  return static_cast<std::int64_t>(ranks.size());
}

const ShardFacts* ValueFacts::first_wrong() const {
  auto it = std::find_if(shards.begin(), shards.end(),
                         [](const ShardFacts& shard) { return shard.wrong.has_value(); });
  return it == shards.end() ? nullptr : &*it;
}

Digest ValueFacts::digest_of_digests() const {
  Hasher hasher;
  for (const ShardFacts& shard : shards) hasher.add(shard.digest.hex());
  return hasher.digest();
}

namespace {

std::int64_t largest_shard_bytes(std::span<const Request> tensors) {
  std::int64_t largest = 0;
  for (auto side : {&Request::source, &Request::destination}) {
    std::vector<std::pair<Rank, std::int64_t>> held;  // (rank, bytes) of each shard
    for (const Request& request : tensors) {
      const Layout& layout = (request.*side)();
      for (std::int32_t position = 0; position < layout.mesh().size(); ++position)
        held.emplace_back(
            layout.mesh().rank_at(position),
            element_count(layout.local_shape(position)) * size_bytes(request.dtype()));
    }
    if (tensors.size() > 1) std::sort(held.begin(), held.end());
    std::int64_t of_rank = 0;
    for (std::size_t i = 0; i < held.size(); ++i) {
      bool same = i > 0 && held[i].first == held[i - 1].first;
      of_rank = held[i].second + (same ? of_rank : 0);
      largest = std::max(largest, of_rank);
    }
  }
  return largest;
}

std::optional<std::int64_t> rate_of(std::int64_t bytes, std::int64_t time_ps) {
  if (time_ps <= 0) return std::nullopt;
  Int128 rate = Int128{bytes} * kPsPerSecond / time_ps;
  return static_cast<std::int64_t>(
      std::min(rate, Int128{std::numeric_limits<std::int64_t>::max()}));
}

}  // namespace

Bandwidths bandwidths_of(std::span<const Request> tensors, std::int64_t bytes_received_max,
                         std::int64_t time_ps) {
  return {rate_of(largest_shard_bytes(tensors), time_ps), rate_of(bytes_received_max, time_ps)};
}

Bandwidths bandwidths_of(const RunReport& report, std::int64_t time_ps) {
  return bandwidths_of(report.tensors, report.bytes.received_max, time_ps);
}

std::vector<std::string> faults_of(const ValidateReport& report) {
  const std::vector<ShardFacts>& shards = report.values.shards;
  const IndexVector<TensorId, Request>& tensors = report.predicted.tensors;
  std::vector<std::string> out;
  if (const ShardFacts* first = report.values.first_wrong()) {
    const Request& request = tensors[first->tensor];
    out.push_back(
        fmt::format("values of {}: rank {} holds a wrong value at global index [{}]: expected "
                    "{}, found {} ({} of its elements are wrong, {} on all ranks)",
                    tensor_text(tensors, first->tensor), to_int(first->rank),
                    text(index_at(first->wrong->index, request.shape())),
                    bits_text(first->wrong->expected, request.dtype()),
                    bits_text(first->wrong->found, request.dtype()), first->wrong->count,
                    report.values.wrong()));
  }
  auto other = std::find_if(shards.begin(), shards.end(),
                            [](const ShardFacts& shard) { return shard.differs_from_store(); });
  if (other != shards.end())
    out.push_back(
        fmt::format("values of {}: rank {}'s shard has digest {}, in the store's run of the same "
                    "plan {} ({} of {} shards differ)",
                    tensor_text(tensors, other->tensor), to_int(other->rank), other->digest.hex(),
                    other->expected->hex(), report.values.unlike_store(), shards.size()));
  return out;
}

std::string pair_text(const SweepRow& row) { return fmt::format("{} -> {}", row.from, row.to); }

// The least number of uses n >= 1 at which p2p's first use + n x time is at most that of every
// other planner. Each other planner gives a lower or an upper limit for n.
void win_back(std::span<SweepRow> rows) {
  for (SweepRow& own : rows) {
    if (own.planner != "p2p" || !own.time_ps || !own.first_use_ps) continue;
    Int128 least = 1, most = std::numeric_limits<std::int64_t>::max();
    for (const SweepRow& other : rows) {
      if (&other == &own || other.planner == "auto" || !other.time_ps) continue;
      Int128 more = *own.first_use_ps - *other.first_use_ps, saved = *other.time_ps - *own.time_ps;
      if (saved > 0)
        least = std::max(least, more > 0 ? (more + saved - 1) / saved : Int128{1});
      else if (saved == 0)
        most = more <= 0 ? most : 0;
      else
        most = std::min(most, more <= 0 ? -more / -saved : Int128{0});
    }
    if (least <= most) own.won_back_after = static_cast<std::int64_t>(least);
  }
}

std::vector<SweepSummary> summarize(const SweepReport& report) {
  std::vector<SweepSummary> out;
  for (const std::string& mesh : report.meshes)
    for (const std::string& planner : report.planners)
      out.push_back(summarize(report, mesh, planner));
  return out;
}

}  // namespace reshard::sim
