// SPDX-License-Identifier: BSD-3-Clause
// Facts about values, and the table.
#include "sim/report/validate_report.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "core/base/integers.h"
#include "core/base/units.h"
#include "sim/report/table.h"

namespace reshard::sim {

namespace {

std::string values_text(const ValueFacts& values) {
  std::int64_t wrong = values.wrong(), wrong_ranks = 0;
  for (const ShardFacts& shard : values.shards) wrong_ranks += shard.wrong ? 1 : 0;
  if (wrong > 0)
    return fmt::format("WRONG: {} of {} elements, on {} of {} ranks", wrong, values.elements(),
                       wrong_ranks, values.shards.size());
  if (values.unlike_store() > 0) return "each as the request defines it, yet not as in the store";
  return fmt::format("{} elements on {} ranks, each as the request defines it", values.elements(),
                     values.shards.size());
}

std::string store_text(const ValueFacts& values) {
  if (!values.store_ran) return "not run: " + values.note;
  if (values.unlike_store() == 0)
    return fmt::format("the same bytes on all {} ranks", values.shards.size());
  return fmt::format("OTHER BYTES on {} of {} ranks", values.unlike_store(), values.shards.size());
}

std::string ratio_of(std::int64_t measured_ps, std::int64_t predicted_ps) {
  return ratio_text(ratio_e4(measured_ps, predicted_ps));
}

std::string step_table(const ValidateReport& report) {
  const std::vector<StepRow>& steps = report.predicted.steps;
  if (steps.empty()) return "no steps: nothing has to be done\n";
  constexpr Table::Align kRight = Table::Align::Right;
  Table table({{"step", kRight},
               {"kind"},
               {"ranks"},
               {"bytes", kRight},
               {"predicted", kRight},
               {"measured", kRight},
               {"min", kRight},
               {"max", kRight},
               {"ratio", kRight}});
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const StepRow& step = steps[s];
    const std::optional<Spread>& measured = report.measured.steps[s];
    std::optional<std::int64_t> predicted;
    if (step.start_ps && step.end_ps) predicted = *step.end_ps - *step.start_ps;
    table.add_row({std::to_string(s), step.kind, shortened(step.ranks), bytes_text(step.bytes),
                   predicted ? duration_text(*predicted) : "-",
                   measured ? duration_text(measured->median_ps) : "-",
                   measured ? duration_text(measured->min_ps) : "-",
                   measured ? duration_text(measured->max_ps) : "-",
                   measured && predicted ? ratio_of(measured->median_ps, *predicted) : "-"});
  }
  const Spread& total = report.measured.total;
  table.add_row({"all", "", "", bytes_text(report.predicted.bytes_received_total),
                 duration_text(report.predicted.time_ps), duration_text(total.median_ps),
                 duration_text(total.min_ps), duration_text(total.max_ps),
                 ratio_of(total.median_ps, report.predicted.time_ps)});
  return table.text();
}

std::string speed_text(const RunReport& report, std::int64_t time_ps) {
  std::optional<std::int64_t> rate = received_bytes_per_s(report, time_ps);
  std::string out = duration_text(time_ps);
  return rate && *rate > 0 ? fmt::format("{}, {} into the fullest rank ({})", out, rate_text(*rate),
                                         bytes_text(report.bytes_received_max))
                           : out;
}

std::string backend_text(const ValidateReport& report) {
  std::string where =
      fmt::format("{} process{}", report.processes, report.processes == 1 ? "" : "es");
  if (report.hosts > 1) where += fmt::format(" on {} hosts", report.hosts);
  return fmt::format("{}: {}; {}", report.backend, report.library, where);
}

std::string shard_table(const ValueFacts& values) {
  Table table({{"rank", Table::Align::Right},
               {"elements", Table::Align::Right},
               {"digest"},
               {"store's digest"}});
  for (const ShardFacts& shard : values.shards)
    table.add_row({std::to_string(to_int(shard.rank)), std::to_string(shard.elements),
                   shard.digest.hex(), shard.expected ? shard.expected->hex() : "-"});
  return fmt::format("\n{}", table.text());
}

}  // namespace

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

Digest digest_of_digests(const std::vector<ShardFacts>& shards) {
  Hasher hasher;
  for (const ShardFacts& shard : shards) hasher.add(shard.digest.hex());
  return hasher.digest();
}

std::optional<std::int64_t> received_bytes_per_s(const RunReport& report, std::int64_t time_ps) {
  if (time_ps <= 0) return std::nullopt;
  Int128 rate = Int128{report.bytes_received_max} * kPsPerSecond / time_ps;
  return static_cast<std::int64_t>(
      std::min(rate, Int128{std::numeric_limits<std::int64_t>::max()}));
}

std::vector<std::string> faults_of(const ValidateReport& report, const Shape& shape) {
  std::vector<std::string> out;
  const std::vector<ShardFacts>& shards = report.values.shards;
  auto first = std::find_if(shards.begin(), shards.end(),
                            [](const ShardFacts& shard) { return shard.wrong.has_value(); });
  if (first != shards.end()) {
    int width = static_cast<int>(size_bytes(parse_dtype(report.predicted.dtype))) * 2 + 2;
    out.push_back(
        fmt::format("values of {}: rank {} holds a wrong value at global index [{}]: expected "
                    "{:#0{}x}, found {:#0{}x} ({} of its elements are wrong, {} on all ranks)",
                    report.predicted.request, to_int(first->rank),
                    text(index_at(first->wrong->index, shape)), first->wrong->expected, width,
                    first->wrong->found, width, first->wrong->count, report.values.wrong()));
  }
  auto other = std::find_if(shards.begin(), shards.end(),
                            [](const ShardFacts& shard) { return shard.differs_from_store(); });
  if (other != shards.end())
    out.push_back(
        fmt::format("values of {}: rank {}'s shard has digest {}, in the store's run of the same "
                    "plan {} ({} of {} shards differ)",
                    report.predicted.request, to_int(other->rank), other->digest.hex(),
                    other->expected->hex(), report.values.unlike_store(), shards.size()));
  return out;
}

std::string validate_table(const ValidateReport& report, bool verbose) {
  const RunReport& predicted = report.predicted;
  Facts head, facts;
  add_head(predicted, head);
  head.add("backend", backend_text(report));
  facts.add("proof", "every destination element, from index sets");
  facts.add("values", values_text(report.values));
  if (report.sums_in_own_order)
    facts.add("",
              "sums are ordered by the library; the inputs were chosen so that they are exact in "
              "any order");
  facts.add("store", store_text(report.values));
  facts.add(report.values.digest ? "digest" : "digest of digests",
            report.values.digest ? report.values.digest->hex()
                                 : digest_of_digests(report.values.shards).hex());
  facts.add("measured",
            fmt::format("{}; median of {} run{} after {} to warm up",
                        speed_text(predicted, report.measured.total.median_ps), report.iterations,
                        report.iterations == 1 ? "" : "s", report.warm_up));
  facts.add("predicted", speed_text(predicted, predicted.time_ps));
  facts.add("ratio", ratio_of(report.measured.total.median_ps, predicted.time_ps) +
                         " measured to predicted");
  if (!report.models_this_machine)
    facts.add("", fmt::format("the prediction is for {}, not for the machine that ran the plan",
                              predicted.topology));
  return head.text() + "\n" + step_table(report) + "\n" + facts.text() +
         (verbose ? shard_table(report.values) : "");
}

}  // namespace reshard::sim
