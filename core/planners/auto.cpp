// SPDX-License-Identifier: BSD-3-Clause
// Makes every other planner's plan, times each on the actual topology, and takes the best that fits
// the memory limit. Which plan is best depends on sizes and links in ways that no rule of thumb
// captures, and timing a plan costs far less than running it.
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/planners/planner.h"

namespace reshard {
namespace {

struct ConsideredPlan {
  std::string_view planner;
  Plan plan;
  Explanation explanation;
  PlanFindings found = {};  // no time: over the memory limit
  std::int64_t first_use_ps = 0;
  // An earlier candidate with the same plan: then this one is never taken, and its plan is
  // discarded.
  const ConsideredPlan* like = nullptr;

  std::int64_t peak_bytes() const { return found.bytes->peak_max; }
  std::int64_t total_ps() const { return found.timing->time_ps + first_use_ps; }
  auto cost() const { return std::pair(total_ps(), peak_bytes()); }
};

// The plans that planners made, and why the others refused.
struct Refusal {
  std::string_view planner;
  std::string why;
};
struct Candidates {
  std::vector<ConsideredPlan> made;
  std::vector<Refusal> refusals;
};

Candidates candidates_of(const Demand& demand, const PlannerInput& input) {
  Candidates out;
  out.made.reserve(planners().size());  // there are pointers to its elements
  const Plan* p2p = nullptr;
  for (const PlannerRow& row : planners()) {
    if (row.make == plan_auto) continue;
    Explanation explanation;
    PlannerInput own = input;
    own.explanation = input.explanation != nullptr ? &explanation : nullptr;
    PlanFindings found;
    own.found = &found;
    own.p2p = p2p;
    try {
      Plan plan = made_by(row, demand, own);
      auto like = std::find_if(out.made.begin(), out.made.end(), [&](const ConsideredPlan& other) {
        return other.plan.steps == plan.steps && other.plan.buffers == plan.buffers;
      });
      bool is_new = like == out.made.end();
      out.made.push_back({row.name, std::move(plan), std::move(explanation), std::move(found)});
      ConsideredPlan& made = out.made.back();
      if (!is_new) {
        made.like = &*like;
        made.plan.steps = {};
        made.plan.buffers = {};
      }
      if (row.make == plan_p2p) p2p = is_new ? &made.plan : &like->plan;
    } catch (const InputError& error) {
      // This planner does not support the request; others may.
      out.refusals.push_back({row.name, error.what()});
    }
  }
  if (out.made.empty()) {
    std::vector<std::string> reasons;
    for (const Refusal& refusal : out.refusals) reasons.push_back(refusal.why);
    throw InputError(fmt::format("expected a planner that supports the request, found none: {}",
                                 fmt::join(reasons, "; ")));
  }
  return out;
}

// A plan that is slower than the best so far need not be timed to its end, unless its time is to be
// explained.
void find_out(ConsideredPlan& own, std::span<ConsideredPlan* const> before,
              const PlannerInput& input) {
  std::int64_t limit_ps = kNoTimeLimit;
  if (input.first_use_ps) own.first_use_ps = input.first_use_ps(own.plan);
  for (const ConsideredPlan* other : before) {
    if (other->found.timing && input.explanation == nullptr)
      limit_ps =
          std::min(limit_ps, std::max<std::int64_t>(1, other->total_ps() - own.first_use_ps));
  }
  if (!own.found.bytes) own.found.bytes = count_bytes(own.plan);
  if (own.found.timing) return;
  if (own.peak_bytes() <= input.memory_limit_bytes.value_or(own.peak_bytes()))
    own.found.timing = input.plan_time(own.plan, *input.topology, limit_ps);
}

// A plan that several planners make is counted and timed once. p2p's comes first: it is often the
// fastest, and never slow to time.
void find_out_all(std::vector<ConsideredPlan>& candidates, const PlannerInput& input) {
  std::vector<ConsideredPlan*> order;
  const ConsideredPlan* first = nullptr;
  for (ConsideredPlan& candidate : candidates) {
    if (candidate.like == nullptr) order.push_back(&candidate);
    if (candidate.planner == "p2p") first = candidate.like != nullptr ? candidate.like : &candidate;
  }
  std::stable_partition(order.begin(), order.end(),
                        [&](const ConsideredPlan* candidate) { return candidate == first; });
  for (std::size_t i = 0; i < order.size(); ++i)
    find_out(*order[i], std::span(order).first(i), input);
  for (ConsideredPlan& candidate : candidates) {
    if (candidate.like == nullptr) continue;
    candidate.found = candidate.like->found;
    candidate.first_use_ps = candidate.like->first_use_ps;
  }
}

// Adds all planners, those that made a plan and those that refused, in the order of the registry.
void add_alternatives(const Candidates& candidates, const ConsideredPlan& best, Explanation& out) {
  for (const PlannerRow& row : planners()) {
    for (const ConsideredPlan& own : candidates.made)
      if (own.planner == row.name)
        out.add(Explanation::Alternative{
            .planner = std::string(row.name),
            .time_ps = own.found.timing ? std::optional(own.found.timing->time_ps) : std::nullopt,
            .first_use_ps = own.first_use_ps,
            .peak_bytes = own.peak_bytes(),
            .taken = &own == &best});
    for (const Refusal& refusal : candidates.refusals)
      if (refusal.planner == row.name)
        out.add(Explanation::Alternative{.planner = std::string(row.name), .refusal = refusal.why});
  }
}

void explain(const Candidates& candidates, const ConsideredPlan& best, Explanation& out) {
  for (const ConsideredPlan& candidate : candidates.made)
    out.add(fmt::format(
        "auto: {} takes {}{}, peak {}", candidate.planner,
        candidate.found.timing ? duration_text(candidate.found.timing->time_ps)
                               : std::string("more memory than the limit"),
        candidate.first_use_ps > 0
            ? fmt::format(" and {} for its first use", duration_text(candidate.first_use_ps))
            : std::string(),
        bytes_text(candidate.peak_bytes())));
  for (const Refusal& refusal : candidates.refusals) out.add("auto: " + refusal.why);
  out.add(fmt::format("auto takes {}", best.planner));
  add_alternatives(candidates, best, out);
  for (const Explanation::Line& line : best.explanation.lines()) {
    if (line.step)
      out.add(*line.step, line.why);
    else
      out.add(line.why);
  }
}

}  // namespace

Plan plan_auto(const Demand& demand, const PlannerInput& input) {
  RESHARD_CHECK(input.plan_time != nullptr && input.topology != nullptr,
                "auto needs a topology and a way to time plans on it");
  Candidates found = candidates_of(demand, input);
  std::vector<ConsideredPlan>& candidates = found.made;
  find_out_all(candidates, input);
  ConsideredPlan* best = nullptr;
  // Of equal plans the first in the registry is taken.
  for (ConsideredPlan& candidate : candidates)
    if (candidate.found.timing && (best == nullptr || candidate.cost() < best->cost()))
      best = &candidate;
  if (best == nullptr) {
    auto least = std::min_element(candidates.begin(), candidates.end(),
                                  [](const ConsideredPlan& a, const ConsideredPlan& b) {
                                    return a.peak_bytes() < b.peak_bytes();
                                  });
    require_memory(fmt::format("planner {}", least->planner), least->peak_bytes(),
                   *input.memory_limit_bytes);
  }
  if (input.explanation != nullptr) explain(found, *best, *input.explanation);
  if (input.found != nullptr) *input.found = std::move(best->found);
  return std::move(best->plan);
}

}  // namespace reshard
