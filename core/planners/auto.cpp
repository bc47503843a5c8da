// SPDX-License-Identifier: BSD-3-Clause
// Makes every other planner's plan, times each on the actual topology, and takes the best that fits
// the memory limit. Which plan is best depends on sizes and links in ways no rule of thumb gets
// right, and timing a plan costs far less than running it.
#include <algorithm>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/planners/planner.h"

namespace reshard {
namespace {

struct Candidate {
  std::string_view planner;
  Plan plan;
  Explanation explanation;
  std::int64_t peak_bytes = 0;
  std::optional<std::int64_t> time_ps = {};  // none: over the memory limit

  auto cost() const { return std::pair(*time_ps, peak_bytes); }
};

std::vector<Candidate> candidates_of(const Request& request, const PlannerInput& input) {
  std::vector<Candidate> out;
  out.reserve(planners().size());  // p2p's plan stays where it is
  const Plan* p2p = nullptr;
  std::string refusals;
  for (const PlannerRow& row : planners()) {
    if (row.make == plan_auto) continue;
    Explanation explanation;
    PlannerInput own = input;
    own.explanation = input.explanation != nullptr ? &explanation : nullptr;
    own.found = nullptr;
    own.p2p = p2p;
    try {
      Plan plan = row.make(request, own);
      out.push_back({row.name, std::move(plan), std::move(explanation)});
      if (row.make == plan_p2p) p2p = &out.back().plan;
    } catch (const InputError& error) {
      // This planner does not do such requests; the others may.
      refusals += (refusals.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  if (out.empty())
    throw InputError(fmt::format(
        "planner auto: expected a planner that does the request, found none: {}", refusals));
  return out;
}

// Planners may agree on a plan; then it is counted and timed once, with the first of them, and
// nothing is found here.
PlanFindings found_out(std::size_t i, std::vector<Candidate>& candidates,
                       const PlannerInput& input) {
  Candidate& own = candidates[i];
  for (std::size_t j = 0; j < i; ++j) {
    const Candidate& other = candidates[j];
    if (other.plan.steps != own.plan.steps || other.plan.buffers != own.plan.buffers) continue;
    own.peak_bytes = other.peak_bytes;
    own.time_ps = other.time_ps;
    return {};
  }
  PlanFindings found{count_bytes(own.plan), {}};
  own.peak_bytes = found.bytes->peak_max;
  if (own.peak_bytes > input.memory_limit_bytes.value_or(own.peak_bytes)) return found;
  found.timing = input.plan_time(own.plan, *input.topology);
  own.time_ps = found.timing->time_ps;
  return found;
}

void explain(const std::vector<Candidate>& candidates, const Candidate& best, Explanation& out) {
  for (const Candidate& candidate : candidates)
    out.add(fmt::format("auto: {} takes {}, peak {}", candidate.planner,
                        candidate.time_ps ? duration_text(*candidate.time_ps)
                                          : std::string("more memory than the limit"),
                        bytes_text(candidate.peak_bytes)));
  out.add(fmt::format("auto takes {}", best.planner));
  for (const Explanation::Line& line : best.explanation.lines()) {
    if (line.step)
      out.add(*line.step, line.why);
    else
      out.add(line.why);
  }
}

}  // namespace

Plan plan_auto(const Request& request, const PlannerInput& input) {
  RESHARD_CHECK(input.plan_time != nullptr && input.topology != nullptr,
                "auto needs a topology and a way to time plans on it");
  std::vector<Candidate> candidates = candidates_of(request, input);
  Candidate* best = nullptr;
  PlanFindings best_found;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    PlanFindings found = found_out(i, candidates, input);
    // The first of equals stands first in the registry.
    if (!candidates[i].time_ps || (best != nullptr && candidates[i].cost() >= best->cost()))
      continue;
    best = &candidates[i];
    best_found = std::move(found);
  }
  if (best == nullptr) {
    auto least = std::min_element(
        candidates.begin(), candidates.end(),
        [](const Candidate& a, const Candidate& b) { return a.peak_bytes < b.peak_bytes; });
    require_memory(fmt::format("planner {}", least->planner), least->peak_bytes,
                   *input.memory_limit_bytes);
  }
  if (input.explanation != nullptr) explain(candidates, *best, *input.explanation);
  if (input.found != nullptr) *input.found = std::move(best_found);
  return std::move(best->plan);
}

}  // namespace reshard
