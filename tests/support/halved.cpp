// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/halved.h"

#include <algorithm>

#include "core/plan/streams.h"

namespace reshard::test {
namespace {

bool reads_blocks(const CollectiveStep& step) {
  return step.kind == CollectiveKind::ReduceScatter || step.kind == CollectiveKind::AllToAll;
}
bool writes_blocks(const CollectiveStep& step) {
  return step.kind == CollectiveKind::AllGather || step.kind == CollectiveKind::AllToAll;
}

// -1: none.
int cut_dim(const Plan& plan, const CollectiveStep& step) {
  for (int d = plan.dims() - 1; d >= 0; --d) {
    if ((reads_blocks(step) && d == step.input_dim) ||
        (writes_blocks(step) && d == step.output_dim))
      continue;
    bool long_enough = true;
    for (std::size_t g = 0; g < step.group_count(); ++g)
      long_enough = long_enough && input_of(plan, step, g).extent(d) > 1 &&
                    output_of(plan, step, g).extent(d) == input_of(plan, step, g).extent(d);
    if (long_enough) return d;
  }
  return -1;
}

CollectiveStep half_of(const Plan& plan, const CollectiveStep& step, int d, bool upper) {
  CollectiveStep half = step;
  half.input_boxes.clear();
  half.output_boxes.clear();
  auto cut = [&](Box box) {
    std::int64_t middle = box.lo[d] + box.extent(d) / 2;
    (upper ? box.lo : box.hi)[d] = middle;
    return box;
  };
  for (std::size_t g = 0; g < step.group_count(); ++g) {
    half.input_boxes.push_back(cut(input_of(plan, step, g)));
    half.output_boxes.push_back(cut(output_of(plan, step, g)));
  }
  return half;
}

}  // namespace

Plan with_halved_collectives(const Plan& plan) {
  Plan out = plan;
  out.steps.clear();
  std::vector<std::vector<StepId>> made(plan.steps.size());
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    std::vector<StepId> after;
    for (StepId before : plan.steps[s].after)
      after.insert(after.end(), made[to_index(before)].begin(), made[to_index(before)].end());
    const auto* collective = std::get_if<CollectiveStep>(&plan.steps[s].body);
    int d = collective == nullptr ? -1 : cut_dim(plan, *collective);
    if (d < 0) {
      made[s] = {out.add_step(plan.steps[s].body, after, plan.steps[s].axes)};
      continue;
    }
    for (bool upper : {false, true})
      made[s].push_back(
          out.add_step(half_of(plan, *collective, d, upper), after, plan.steps[s].axes));
  }
  assign_streams(out);
  return out;
}

}  // namespace reshard::test
