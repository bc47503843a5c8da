// SPDX-License-Identifier: BSD-3-Clause
// Dependencies between whole steps, and a greedy choice of streams.
#include "core/schedule/step_streams.h"

#include <algorithm>

#include "core/schedule/lowering.h"

namespace reshard {
namespace {

// For each stream the last step that is known to be complete.
using Known = std::vector<std::int32_t>;

void merge(Known& into, const Known& other) {
  for (std::size_t s = 0; s < into.size(); ++s) into[s] = std::max(into[s], other[s]);
}

// The best stream for a step that needs `needed`: one with a latest step that it waits for anyway,
// the more recent the better; else an empty one; else the one idle for longest.
std::size_t choose(const Known& last, const Known& needed) {
  std::size_t best = 0;
  auto rank = [&](std::size_t s) {
    if (last[s] < 0) return std::pair(1, 0);
    return last[s] <= needed[s] ? std::pair(2, last[s]) : std::pair(0, -last[s]);
  };
  for (std::size_t s = 1; s < last.size(); ++s)
    if (rank(s) > rank(best)) best = s;
  return best;
}

}  // namespace

Before steps_before(const Plan& plan, const std::vector<TemporaryLayout>& temporaries) {
  Before before(plan.steps.size());
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    for (StepId step : plan.steps[s].after) before[s].push_back(static_cast<std::int32_t>(step));
  for (std::size_t slot = 0; slot < temporaries.size(); ++slot)
    wait_for_reuse(
        temporaries[slot],
        [&](const UseBuffer& use) {
          for (std::size_t s = 0; s < plan.steps.size(); ++s)
            for_each_access(plan, plan.steps[s], [&](BufferId buffer, Slot on, bool is_write) {
              if (on == static_cast<Slot>(slot))
                use(static_cast<std::int32_t>(s), buffer, is_write);
            });
        },
        before);
  return before;
}

std::vector<StreamedStep> assign_streams(const Before& before, int streams) {
  std::vector<StreamedStep> out(before.size());
  Known none(to_index(streams), -1), last = none;
  std::vector<Known> complete_with(before.size(), none);  // what is complete once the step is
  for (std::size_t i = 0; i < before.size(); ++i) {
    Known needed = none;
    for (std::int32_t step : before[i]) merge(needed, complete_with[to_index(step)]);
    std::size_t stream = choose(last, needed);
    Known known = last[stream] < 0 ? none : complete_with[to_index(last[stream])];
    // The latest first, because it can imply others.
    std::vector<std::int32_t> wanted = before[i];
    std::sort(wanted.rbegin(), wanted.rend());
    for (std::int32_t step : wanted) {
      auto on = to_index(out[to_index(step)].stream);
      if (step <= known[on]) continue;
      out[i].waits.push_back(step);
      merge(known, complete_with[to_index(step)]);
    }
    std::reverse(out[i].waits.begin(), out[i].waits.end());
    out[i].stream = static_cast<int>(stream);
    last[stream] = static_cast<std::int32_t>(i);
    known[stream] = static_cast<std::int32_t>(i);
    complete_with[i] = std::move(known);
  }
  return out;
}

}  // namespace reshard
