// SPDX-License-Identifier: BSD-3-Clause
// One function per defect. Each asks whether the steps that PyTorch takes, or the layouts
// themselves, run into it.
#include "core/torch/known_defects.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/integers.h"
#include "core/torch/merge.h"
#include "core/torch/placement_state.h"
#include "core/torch/redistribution.h"

namespace reshard {
namespace {

// The request as PyTorch's planner sees it, and that planner's steps; no steps where PyTorch's own
// search is not reproduced here.
struct TorchView {
  const char* planner;
  Layout source;
  std::vector<TorchStep> steps;
};

TorchView view_of(const Request& request, const std::optional<OrderedRequest>& ordered,
                  std::int32_t devices_per_host) {
  if (torch_plans_greedily(request))
    return {"greedy", request.source(), torch_greedy_steps(request)};
  if (!ordered || !can_search(*ordered)) return {"", request.source(), {}};
  return {"min-cost", ordered->source, torch_min_cost_steps(*ordered, devices_per_host)};
}

// Steps on axes of size 1 only rename placements.
bool moves(const Layout& layout, const TorchStep& step) {
  return layout.mesh().axis_size(step.axis) > 1;
}

// ---- #132751

void gathers_what_it_cuts(const Request& request, const TorchView& view,
                          std::vector<TorchDefect>& out) {
  std::set<int> axes;
  for (const TorchStep& step : view.steps)
    if (moves(view.source, step) && step.from.is_shard_like() && step.to.is_replicate() &&
        request.destination().placement(step.axis).is_shard_like())
      axes.insert(step.axis);
  if (!axes.empty())
    out.push_back(
        {132751,
         fmt::format("PyTorch's {} planner gathers over axis {} and then shards over it again",
                     view.planner, fmt::join(axes, ", "))});
}

// ---- #168134

// Whether the two readings of a strided cut of this length differ. They do where the last piece is
// short: PyTorch cuts it into chunks sized by its own length, the other reading into chunks as long
// as those of whole pieces.
bool is_disputed(std::int64_t length, std::int64_t factor, std::int64_t ranks) {
  std::int64_t piece = ceil_div(length, factor);
  std::int64_t rest = piece == 0 ? 0 : length % piece;
  return rest > 1 && ranks > 1 && ceil_div(rest, ranks) != ceil_div(piece, ranks);
}

// Lengths of the shards that one axis makes of a dim of this length.
std::set<std::int64_t> cut_lengths(std::int64_t length, std::int64_t factor, std::int64_t ranks) {
  std::set<std::int64_t> out;
  std::int64_t piece = ceil_div(length, factor);
  std::int64_t whole = piece == 0 ? 0 : length / piece, rest = piece == 0 ? 0 : length % piece;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    Chunk of_piece = chunk(piece, ranks, rank), of_rest = chunk(rest, ranks, rank);
    out.insert(whole * (of_piece.hi - of_piece.lo) + of_rest.hi - of_rest.lo);
  }
  return out;
}

bool has_disputed_cut(const Layout& layout) {
  for (int dim = 0; dim < layout.dims(); ++dim) {
    std::set<std::int64_t> lengths{layout.shape()[dim]};
    for (int axis : layout.stack(dim)) {
      std::int64_t factor = layout.placement(axis).split_factor;
      std::int64_t ranks = layout.mesh().axis_size(axis);
      std::set<std::int64_t> next;
      for (std::int64_t length : lengths) {
        if (is_disputed(length, factor, ranks)) return true;
        next.merge(cut_lengths(length, factor, ranks));
      }
      lengths = std::move(next);
    }
  }
  return false;
}

void disputed_strided_shards(const Request& request, std::vector<TorchDefect>& out) {
  if (has_disputed_cut(request.source()) || has_disputed_cut(request.destination()))
    out.push_back({168134,
                   "the contents of an uneven _StridedShard are disputed; here they are those of "
                   "PyTorch's distribute_tensor"});
}

void inexact_shard_orders(const TorchView& view, const std::optional<OrderedRequest>& ordered,
                          std::vector<TorchDefect>& out) {
  if (ordered && !ordered->exact && !view.steps.empty())
    out.push_back({168134,
                   "PyTorch plans an uneven _StridedShard as a shard order that does not match "
                   "what ranks hold: it hangs or returns wrong values"});
}

// ---- #171916

void reduces_axis_by_axis(const Request& request, const TorchView& view,
                          std::vector<TorchDefect>& out) {
  std::vector<int> axes;
  for (const TorchStep& step : view.steps)
    if (moves(view.source, step) && step.from.is_partial() && step.to.is_replicate() &&
        (step.from.op == ReduceOp::Sum || step.from.op == ReduceOp::Avg ||
         step.from.op == ReduceOp::Product))
      axes.push_back(step.axis);
  if (axes.size() > 1 && is_floating(request.dtype()))
    out.push_back(
        {171916,
         fmt::format(
             "PyTorch reduces over axes {} one after another, so ranks may end with different bits",
             fmt::join(axes, ", "))});
}

// ---- #178735

// Whether another axis cuts the dim as well, in the source or the destination.
bool is_nested(const Request& request, int axis, int dim) {
  for (const Layout* side : {&request.source(), &request.destination()})
    for (int other : side->stack(dim))
      if (other != axis && side->mesh().axis_size(other) > 1) return true;
  return false;
}

void unseen_strided_shards(const Request& request, const std::optional<OrderedRequest>& ordered,
                           std::vector<TorchDefect>& out) {
  if (ordered || request.source() == request.destination()) return;
  for (const Layout* side : {&request.source(), &request.destination()})
    for (int axis = 0; axis < side->mesh().axes(); ++axis) {
      const Placement& placement = side->placement(axis);
      if (placement.kind != Placement::Kind::StridedShard || side->mesh().axis_size(axis) == 1 ||
          !is_nested(request, axis, placement.dim))
        continue;
      out.push_back(
          {178735, fmt::format("PyTorch derives no shard order from {}, and its greedy planner "
                               "misses that other axes shard dim {} too: steps may be missing",
                               text(placement), int{placement.dim})});
      return;
    }
}

// ---- #191580

void pads_shard_by_shard(const TorchView& view, std::vector<TorchDefect>& out) {
  PlacementState state(view.source);
  for (const TorchStep& step : view.steps) {
    if (moves(view.source, step) && step.from.is_partial() && step.to.is_shard_like()) {
      Layout before = state.layout_like(view.source);
      std::int64_t ranks = before.mesh().axis_size(step.axis);
      for (std::int32_t position = 0; position < before.mesh().size(); ++position)
        if (size_of(before.runs(step.to.dim, position)) % ranks != 0) {
          out.push_back({191580, fmt::format("PyTorch pads the uneven reduce-scatter over axis {} "
                                             "shard by shard, with copies of the whole input",
                                             step.axis)});
          return;
        }
    }
    state.place(step.axis, step.to);
  }
}

// ---- #194457

// Whether one flat cut of `after` by these axes gives other lengths than `before` has.
bool differs_from_flat(const Layout& before, const Layout& after, int dim,
                       std::span<const int> axes) {
  for (std::int32_t position = 0; position < before.mesh().size(); ++position) {
    MeshCoordinate coordinate = before.mesh().coordinate(position);
    std::int64_t ranks = 1, member = 0;
    for (int axis : axes) {
      ranks *= before.mesh().axis_size(axis);
      member = member * before.mesh().axis_size(axis) + coordinate[to_index(axis)];
    }
    Chunk flat = chunk(size_of(after.runs(dim, position)), ranks, member);
    if (size_of(before.runs(dim, position)) != flat.hi - flat.lo) return true;
  }
  return false;
}

void joins_uneven_gathers(const TorchView& view, std::vector<TorchDefect>& out) {
  PlacementState state(view.source);
  std::span<const TorchStep> steps = view.steps;
  for (std::size_t count : joined_steps(view.source, steps)) {
    const TorchStep& first = steps[0];
    Layout before = state.layout_like(view.source);
    std::vector<int> axes;
    for (const TorchStep& step : steps.first(count)) {
      state.place(step.axis, step.to);
      axes.push_back(step.axis);
    }
    std::ranges::sort(axes);
    steps = steps.subspan(count);
    if (count == 1 || !first.from.is_shard_like() ||
        !differs_from_flat(before, state.layout_like(view.source), first.from.dim, axes))
      continue;
    out.push_back({194457, fmt::format("with a mesh flattened from axes {}, PyTorch gathers their "
                                       "uneven shards as if one axis had cut them: rows are lost",
                                       fmt::join(axes, ", "))});
    return;
  }
}

}  // namespace

std::vector<TorchDefect> torch_known_defects(const Request& request,
                                             std::int32_t devices_per_host) {
  std::vector<TorchDefect> out;
  if (!request.same_mesh()) return out;
  std::optional<OrderedRequest> ordered = as_shard_orders(request);
  TorchView view = view_of(request, ordered, devices_per_host);
  gathers_what_it_cuts(request, view, out);
  disputed_strided_shards(request, out);
  inexact_shard_orders(view, ordered, out);
  reduces_axis_by_axis(request, view, out);
  unseen_strided_shards(request, ordered, out);
  pads_shard_by_shard(view, out);
  joins_uneven_gathers(view, out);
  return out;
}

}  // namespace reshard
