// SPDX-License-Identifier: BSD-3-Clause
// What a step of one rank's program waits for. The plan says which steps write what it reads; a
// temporary that takes over memory of another must wait for all that use the other, which the plan,
// where every temporary has memory of its own, knows nothing about.
#include <algorithm>

#include "backends/mpi/prepared.h"
#include "core/schedule/lowering.h"

namespace reshard::backends::mpi {
namespace {

void sort_unique(std::vector<std::int32_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

std::vector<std::vector<std::int32_t>> ordered_after(const Plan& plan, const RankProgram& program,
                                                     const TemporaryLayout& layout) {
  std::vector<std::vector<std::int32_t>> after;
  for (const RankStep& step : program.steps) after.push_back(step.after);
  if (layout.reuses.empty()) return after;
  std::vector<std::vector<std::int32_t>> users(plan.buffers.size()), writers(plan.buffers.size());
  for (std::size_t i = 0; i < program.steps.size(); ++i)
    for_each_access(plan.steps[to_index(program.steps[i].step)],
                    [&](BufferId buffer, Slot slot, bool writes) {
                      if (slot != program.slot) return;
                      users[to_index(buffer)].push_back(static_cast<std::int32_t>(i));
                      if (writes) writers[to_index(buffer)].push_back(static_cast<std::int32_t>(i));
                    });
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    sort_unique(users[b]);
    sort_unique(writers[b]);
  }
  for (const TemporaryLayout::Reuse& reuse : layout.reuses)
    for (std::int32_t writer : writers[to_index(reuse.taker)]) {
      std::vector<std::int32_t>& list = after[static_cast<std::size_t>(writer)];
      const std::vector<std::int32_t>& before = users[to_index(reuse.taken)];
      list.insert(list.end(), before.begin(), before.end());
    }
  for (std::vector<std::int32_t>& list : after) sort_unique(list);
  return after;
}

}  // namespace reshard::backends::mpi
