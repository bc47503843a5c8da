// SPDX-License-Identifier: BSD-3-Clause
#include "core/ops/torch_moves.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/torch/redistribution.h"

namespace reshard {
namespace {

bool is_whole(const OpPlacements& placements) {
  return std::all_of(placements.begin(), placements.end(),
                     [](const OpPlacement& placement) { return placement.is_replicate(); });
}

// PyTorch's greedy planner for default shard orders (core/torch/greedy.cpp handles all orders):
// backward from the last axis, through R if axes below cut the wanted dim now but not in the end,
// or the reverse; then forward.
class Walk {
 public:
  Walk(const OpPlacements& from, const OpPlacements& to, std::span<const std::int32_t> sizes)
      : now_(from), to_(to) {
    bool cut = false;
    for (std::size_t axis = 0; axis < now_.size(); ++axis)
      cut = cut || (now_[axis].is_shard_like() && sizes[axis] > 1);
    for (std::size_t axis = now_.size(); cut && axis-- > 0;)
      change(axis, fits_below(axis) ? to_[axis] : OpPlacement::replicate());
    for (std::size_t axis = 0; axis < now_.size(); ++axis) change(axis, to_[axis]);
  }

  std::vector<OpStep> steps;

 private:
  bool fits_below(std::size_t axis) const {
    if (!to_[axis].is_shard_like()) return true;
    for (std::size_t below = 0; below < axis; ++below) {
      bool cuts = now_[below].is_shard_like() && now_[below].dim == to_[axis].dim,
           will = to_[below].is_shard_like() && to_[below].dim == to_[axis].dim;
      if (cuts != will) return false;
    }
    return true;
  }

  void change(std::size_t axis, const OpPlacement& to) {
    if (now_[axis] == to) return;
    steps.push_back({static_cast<int>(axis), now_[axis], to});
    now_[axis] = to;
  }

  OpPlacements now_;
  const OpPlacements& to_;
};

}  // namespace

std::string text(const OpStep& step) {
  return fmt::format("{}:{}->{}", step.axis, text(step.from), text(step.to));
}

TorchMoves::TorchMoves(MeshRef mesh, std::int32_t devices_per_host)
    : mesh_(std::move(mesh)),
      devices_per_host_(devices_per_host),
      topology_(torch_mesh_topology(*mesh_, devices_per_host)) {}

double TorchMoves::cost_us(const TensorSpec& from, const OpPlacements& to) const {
  if (is_whole(from.placements) || from.placements == to) return 0.0;
  bool strided = has_strided(from.placements) || has_strided(to);
  if (strided && !from.of_view) return kInfiniteCost;
  for (std::size_t axis = 0; axis < to.size(); ++axis)
    if (to[axis].is_partial() && !from.placements[axis].is_replicate() &&
        from.placements[axis] != to[axis])
      return kInfiniteCost;
  double gib = static_cast<double>(element_count(from.meta.shape) * size_bytes(from.meta.dtype));
  double shards = 1.0;
  for (std::size_t axis = 0; axis < to.size(); ++axis)
    if (from.placements[axis].is_shard_like()) shards *= mesh_->shape()[axis];
  gib = gib / shards / 1024.0 / 1024.0 / 1024.0;
  double cost = 0.0;
  for (const OpStep& step : steps(from, to)) {
    if (step.from.kind == OpPlacement::Kind::StridedShard ||
        step.to.kind == OpPlacement::Kind::StridedShard)
      continue;
    cost += torch_step_cost_us({step.axis, step.from.carried(), step.to.carried()}, topology_, gib);
  }
  return cost;
}

std::vector<OpStep> TorchMoves::steps(const TensorSpec& from, const OpPlacements& to) const {
  if (from.placements == to) return {};
  if (has_strided(from.placements) || has_strided(to)) return strided_steps(from, to);
  return Walk(from.placements, to, mesh_->shape()).steps;
}

// PyTorch leaves these to its min-cost planner.
std::vector<OpStep> TorchMoves::strided_steps(const TensorSpec& from,
                                              const OpPlacements& to) const {
  auto layout = [&](const OpPlacements& placements) {
    std::vector<Placement> carried;
    for (const OpPlacement& placement : placements) carried.push_back(placement.carried());
    return Layout(from.meta.shape, from.meta.dtype, mesh_, std::move(carried));
  };
  Request request(layout(from.placements), layout(to));
  std::optional<OrderedRequest> ordered = as_shard_orders(request);
  std::vector<TorchStep> found = ordered && can_search(*ordered)
                                     ? torch_min_cost_steps(*ordered, devices_per_host_)
                                     : torch_greedy_steps(request);
  std::vector<OpStep> out;
  for (const TorchStep& step : found) out.push_back({step.axis, step.from, step.to});
  // The first and last steps get the caller's placements: a shard order is a _StridedShard again,
  // and a norm's addends are a norm partial again.
  for (std::size_t axis = 0; axis < to.size(); ++axis) {
    auto is_of = [&](const OpStep& step) { return to_index(step.axis) == axis; };
    auto first = std::find_if(out.begin(), out.end(), is_of);
    auto last = std::find_if(out.rbegin(), out.rend(), is_of);
    if (first != out.end()) first->from = from.placements[axis];
    if (last != out.rend()) last->to = to[axis];
  }
  return out;
}

}  // namespace reshard
