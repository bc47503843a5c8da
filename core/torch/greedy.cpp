// SPDX-License-Identifier: BSD-3-Clause
// PyTorch's greedy redistribution planner: which axis changes to which placement, in which order.
//
// With default shard orders it is exactly PyTorch's walk. If an axis of more than one rank shards
// the source, axes are first visited from last to first. An axis that the target shards on dim d
// can change to that directly only if the cuts of d below it (on earlier axes) already equal the
// target's; else it becomes R. Then axes are visited from first to last, and each changes to its
// target placement if it differs. So a gather always removes the innermost axis of a dim, and a cut
// always adds a new innermost axis.
//
// For shard orders and _StridedShard, "below" is read from the stacks. The backward walk takes the
// innermost axis of each stack first (ties: the higher axis), the forward walk the outermost (ties:
// the lower axis), and the axes below one are compared with their placements, split factors
// included. After the backward walk every stack is a prefix of the target's, so the forward walk
// too only ever adds innermost axes. PyTorch itself would use its min-cost planner for these.
//
// PyTorch changes a _StridedShard only by way of Replicate, so such a step becomes two here.
#include <algorithm>

#include "core/base/errors.h"
#include "core/torch/placement_state.h"
#include "core/torch/redistribution.h"

namespace reshard {
namespace {

class GreedyWalk {
 public:
  GreedyWalk(const Layout& source, const Layout& target)
      : state_(source), source_(source), target_(target) {
    steps_.reserve(2 * source.placements().size());
  }

  std::vector<TorchStep> run() {
    if (is_cut()) walk_backward();
    walk_forward();
    return std::move(steps_);
  }

 private:
  int axes() const { return source_.mesh().axes(); }

  // PyTorch's num_shards > 1: a shard over axes of size 1 does not count. Non-default orders, which
  // PyTorch leaves to its min-cost planner, are always walked.
  bool is_cut() const {
    if (!source_.has_default_order() || !target_.has_default_order()) return true;
    for (int axis = 0; axis < axes(); ++axis)
      if (source_.placement(axis).is_shard_like() && source_.mesh().axis_size(axis) > 1)
        return true;
    return false;
  }

  void walk_backward() {
    std::uint32_t visited = 0;
    for (int n = 0; n < axes(); ++n) {
      int axis = axes() - 1;
      while ((visited >> axis & 1U) != 0 || !is_end_of_rest(source_, axis, visited, true)) --axis;
      visited |= 1U << axis;
      change(axis, aim(axis));
    }
  }

  void walk_forward() {
    std::uint32_t visited = 0;
    for (int n = 0; n < axes(); ++n) {
      int axis = 0;
      while ((visited >> axis & 1U) != 0 || !is_end_of_rest(target_, axis, visited, false)) ++axis;
      visited |= 1U << axis;
      change(axis, target_.placement(axis));
    }
  }

  // Whether no unvisited axis is further in (or, for the forward walk, further out) on the same
  // stack.
  static bool is_end_of_rest(const Layout& layout, int axis, std::uint32_t visited,
                             bool innermost) {
    if (!layout.placement(axis).is_shard_like()) return true;
    const std::vector<int>& stack = layout.stack(layout.placement(axis).dim);
    auto at = std::find(stack.begin(), stack.end(), axis);
    auto waits = [&](int other) { return (visited >> other & 1U) == 0; };
    return innermost ? std::none_of(at + 1, stack.end(), waits)
                     : std::none_of(stack.begin(), at, waits);
  }

  Placement aim(int axis) const {
    const Placement& to = target_.placement(axis);
    if (!to.is_shard_like()) return to;
    const std::vector<int>&now = state_.stack(to.dim), &wanted = target_.stack(to.dim);
    auto now_end = std::find(now.begin(), now.end(), axis),
         wanted_end = std::find(wanted.begin(), wanted.end(), axis);
    bool same = std::equal(now.begin(), now_end, wanted.begin(), wanted_end, [&](int a, int b) {
      return a == b && state_.of(a) == target_.placement(b);
    });
    return same ? to : Placement::replicate();
  }

  void change(int axis, const Placement& to) {
    const Placement from = state_.of(axis);
    if (from == to) return;
    bool strided = from.is_strided() || to.is_strided();
    if (strided && !from.is_replicate() && !to.is_replicate()) {
      change(axis, Placement::replicate());
      change(axis, to);
      return;
    }
    steps_.push_back({axis, from, to});
    state_.place(axis, to);
  }

  PlacementState state_;
  const Layout &source_, &target_;
  std::vector<TorchStep> steps_;
};

}  // namespace

std::vector<TorchStep> torch_greedy_steps(const Request& request) {
  RESHARD_CHECK(request.same_mesh(), "PyTorch's planners stay within one mesh");
  return GreedyWalk(request.source(), request.destination()).run();
}

}  // namespace reshard
