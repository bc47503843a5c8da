// SPDX-License-Identifier: BSD-3-Clause
// Makes every other planner's plan, times each on the actual topology, and takes the best that fits
// the memory limit. Which plan is best depends on sizes and links in ways no rule of thumb gets
// right, and timing a plan costs far less than running it.
#include <algorithm>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/planners/planner.h"
#include "core/schedule/accounting.h"

namespace reshard {
namespace {

struct Candidate {
  std::string_view planner;
  Plan plan;
  Explanation explanation;
  std::int64_t peak_bytes = 0;
  std::int64_t time_ps = -1;  // not timed: over the memory limit
};

std::vector<Candidate> candidates_of(const Request& request, const PlannerInput& input) {
  std::vector<Candidate> out;
  std::string refusals;
  for (const PlannerRow& row : planners()) {
    if (row.make == plan_auto) continue;
    Explanation explanation;
    PlannerInput own = input;
    own.explanation = input.explanation != nullptr ? &explanation : nullptr;
    try {
      Plan plan = row.make(request, own);
      std::int64_t peak = count_bytes(plan).peak_max;
      out.push_back({row.name, std::move(plan), std::move(explanation), peak});
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

// Planners may agree on a plan; then it is timed once.
std::int64_t time_of(std::size_t i, const std::vector<Candidate>& candidates,
                     const PlannerInput& input) {
  for (std::size_t j = 0; j < i; ++j)
    if (candidates[j].time_ps >= 0 && candidates[j].plan.steps == candidates[i].plan.steps &&
        candidates[j].plan.buffers == candidates[i].plan.buffers)
      return candidates[j].time_ps;
  return input.plan_time(candidates[i].plan, *input.topology);
}

void explain(const std::vector<Candidate>& candidates, const Candidate& best, Explanation& out) {
  for (const Candidate& candidate : candidates)
    out.add(fmt::format("auto: {} takes {}, peak {}", candidate.planner,
                        candidate.time_ps < 0 ? std::string("more memory than the limit")
                                              : duration_text(candidate.time_ps),
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
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (!input.memory_limit_bytes || candidates[i].peak_bytes <= *input.memory_limit_bytes)
      candidates[i].time_ps = time_of(i, candidates, input);

  // The first of equals stands first in the registry.
  auto best = candidates.end();
  for (auto it = candidates.begin(); it != candidates.end(); ++it) {
    if (it->time_ps < 0) continue;
    if (best == candidates.end() ||
        std::pair(it->time_ps, it->peak_bytes) < std::pair(best->time_ps, best->peak_bytes))
      best = it;
  }
  if (best == candidates.end()) {
    auto least = std::min_element(
        candidates.begin(), candidates.end(),
        [](const Candidate& a, const Candidate& b) { return a.peak_bytes < b.peak_bytes; });
    throw InputError(fmt::format(
        "memory limit: expected at least {} bytes per rank, which planner {} needs, found {}",
        least->peak_bytes, least->planner, *input.memory_limit_bytes));
  }
  if (input.explanation != nullptr) explain(candidates, *best, *input.explanation);
  return std::move(best->plan);
}

}  // namespace reshard
