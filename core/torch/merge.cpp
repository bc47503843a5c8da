// SPDX-License-Identifier: BSD-3-Clause
#include "core/torch/merge.h"

#include <algorithm>

#include "core/torch/placement_state.h"

namespace reshard {
namespace {

bool gathers(const TorchStep& step) { return step.from.is_shard_like() && step.to.is_replicate(); }
bool scatters(const TorchStep& step) { return step.from.is_partial() && step.to.is_shard_like(); }
bool reduces(const TorchStep& step) { return step.from.is_partial() && step.to.is_replicate(); }

bool is_sum(const Placement& placement) {
  return placement.is_partial() && (placement.op == ReduceOp::Sum || placement.op == ReduceOp::Avg);
}

bool can_merge(const TorchStep& a, const TorchStep& b) {
  return a.to == b.to && (a.from == b.from || (is_sum(a.from) && is_sum(b.from)));
}

// The number of leading steps that could be one collective.
std::size_t mergeable_steps(std::span<const TorchStep> steps) {
  if (!gathers(steps[0]) && !scatters(steps[0]) && !reduces(steps[0])) return 1;
  auto other = std::ranges::find_if_not(
      steps, [&](const TorchStep& step) { return can_merge(step, steps[0]); });
  return to_index(other - steps.begin());
}

bool every_extent_divides(const Layout& layout, int dim, std::int64_t divisor) {
  for (std::int32_t position = 0; position < layout.mesh().size(); ++position)
    if (size_of(layout.runs(dim, position)) % divisor != 0) return false;
  return true;
}

bool can_join(const PlacementState& before, const Layout& model, std::span<const TorchStep> steps) {
  auto ascending = [](const TorchStep& a, const TorchStep& b) { return a.axis < b.axis; };
  if (reduces(steps[0])) return true;
  if (gathers(steps[0])) return std::is_sorted(steps.rbegin(), steps.rend(), ascending);
  std::int64_t ranks = 1;
  for (const TorchStep& step : steps) ranks *= model.mesh().axis_size(step.axis);
  return std::ranges::is_sorted(steps, ascending) &&
         every_extent_divides(before.layout_like(model), steps[0].to.dim, ranks);
}

}  // namespace

std::vector<std::size_t> joined_steps(const Layout& source, std::span<const TorchStep> steps) {
  std::vector<std::size_t> out;
  PlacementState state(source);
  while (!steps.empty()) {
    std::size_t mergeable = mergeable_steps(steps);
    if (mergeable > 1 && can_join(state, source, steps.first(mergeable)))
      out.push_back(mergeable);
    else
      out.insert(out.end(), mergeable, 1);
    for (const TorchStep& step : steps.first(mergeable)) state.place(step.axis, step.to);
    steps = steps.subspan(mergeable);
  }
  return out;
}

}  // namespace reshard
