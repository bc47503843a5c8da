// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sweep/sweep_run.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/proof/proof.h"
#include "core/schedule/forwarding.h"
#include "core/traffic/accounting.h"
#include "tests/support/rough_data.h"
#include "tests/support/star.h"

namespace reshard::test {

std::string text(const SweepCounts& counts) {
  return fmt::format("{} pairs, {} forbidden, {} refused, {} runs", counts.pairs, counts.forbidden,
                     counts.refused, counts.runs);
}

Sweep::Sweep(std::vector<std::string_view> planners)
    : topology_(star(kDrawnRanks)), store_({.poison = true}) {
  for (std::string_view name : planners) planners_.push_back(&find_planner(name));
}

void Sweep::run(const SmallLayout& source, const SmallLayout& destination) {
  ++counts_.pairs;
  std::optional<Request> request;
  try {
    request.emplace(source.layout, destination.layout);
  } catch (const InputError&) {
    ++counts_.forbidden;
  }
  if (request.has_value() == is_forbidden(source.layout, destination.layout)) {
    ++failed_;
    failures_.push_back(fmt::format("{} -> {}: forbidden or not, against the table",
                                    source.layout.text(), destination.layout.text()));
  }
  if (!request) return;

  Pattern pattern(*request);
  RequestOracle oracle(*request, pattern);
  sources_.clear();
  destinations_.clear();
  for (std::int32_t p = 0; p < source.layout.mesh().size(); ++p)
    sources_.push_back(oracle.source(p, source.oracle.elements(p)));
  for (std::int32_t p = 0; p < destination.layout.mesh().size(); ++p) {
    destinations_.push_back(oracle.destination(p, destination.oracle.elements(p)));
    if (pattern.check(destination.layout, p, oracle.addends_of_destination(p),
                      destinations_.back()))
      fail(*request, "pattern",
           fmt::format("expects other values than the oracle at position {}", p));
  }
  for (const PlannerRow* planner : planners_) run_planner(*request, *planner, source, destination);
}

void Sweep::run_planner(const Request& request, const PlannerRow& planner,
                        const SmallLayout& source, const SmallLayout& destination) {
  if (planner.needs_placements && !request.is_product()) {
    ++counts_.refused;
    return;
  }
  try {
    PlannerInput input;
    input.topology = &topology_;
    input.plan_time = [](const Plan& plan, const Topology&, std::int64_t) {
      return count_bytes(plan).received_max;
    };
    Plan plan = planner.make(request, input);
    if (std::optional<Refutation> refutation = check_plan(plan).refutation)
      return fail(request, planner.name, "refuted: " + refutation->what);
    // What runs, too: the plan's operations and those that the store makes of them.
    Forwarding forwarding(plan);
    for (const RunStep& run :
         {RunStep([&](StepId id, Operations&out) { lower(plan, plan.steps[id], out); }),
          RunStep([&](StepId id, Operations&out) { forwarding.run(id, out); })})
      if (std::optional<Refutation> refutation = check_operations(plan, run))
        return fail(request, planner.name, "what runs is refuted: " + refutation->what);
    std::vector<Slot> slots(plan.slot_count());
    std::iota(slots.begin(), slots.end(), 0);
    std::vector<SchedulePolicy> policies{no_native_collectives()};
    bool collectives = false;
    for_each_collective(plan, [&](StepId, const CollectiveFacts&) { collectives = true; });
    if (collectives) policies.emplace_back();
    for (const SchedulePolicy& policy : policies)
      if (std::optional<Refutation> refutation =
              check_schedules(plan, rank_schedules(plan, slots, policy)))
        return fail(request, planner.name, "what ranks do is refuted: " + refutation->what);
    compare(plan, source, destination);
    ++counts_.runs;
  } catch (const InputError& error) {
    // One mesh is the condition of planners of collectives, few states that of the min-cost search;
    // nothing else may be refused.
    bool too_many = planner.name == "graph" && request.source().mesh().axes() == kMaxAxes &&
                    request.shape().size() == kMaxDims;
    if ((request.same_mesh() && !too_many) || planner.name == "p2p" || planner.name == "auto")
      return fail(request, planner.name, std::string("refused: ") + error.what());
    ++counts_.refused;
  } catch (const std::exception& error) {
    fail(request, planner.name, error.what());
  }
}

void Sweep::compare(const Plan& plan, const SmallLayout& source, const SmallLayout& destination) {
  std::int32_t taken = 0;
  test::run_once(
      store_, plan,
      [&](Rank rank, std::span<std::byte> bytes) {
        const std::vector<std::byte>& shard =
            sources_[static_cast<std::size_t>(source.layout.mesh().position_of(rank).value())];
        RESHARD_CHECK(shard.size() == bytes.size(), "source shard size");
        if (!shard.empty()) std::memcpy(bytes.data(), shard.data(), shard.size());
      },
      [&](Rank rank, std::span<const std::byte> bytes) {
        const std::vector<std::byte>& shard = destinations_[static_cast<std::size_t>(
            destination.layout.mesh().position_of(rank).value())];
        ++taken;
        if (!std::equal(shard.begin(), shard.end(), bytes.begin(), bytes.end()))
          fail(plan.request(), plan.planner,
               fmt::format("rank {} differs from the oracle", to_int(rank)));
      });
  if (taken != destination.layout.mesh().size())
    fail(plan.request(), plan.planner, fmt::format("{} destination shards", taken));
}

void Sweep::fail(const Request& request, std::string_view planner, const std::string& what) {
  ++failed_;
  if (failures_.size() < 10)
    failures_.push_back(fmt::format("{} by {}: {}", request.text(), planner, what));
}

std::string Sweep::failures() const {
  if (failed_ == 0) return {};
  std::string out = fmt::format("{} failures:", failed_);
  for (const std::string& failure : failures_) out += "\n  " + failure;
  return out;
}

}  // namespace reshard::test
