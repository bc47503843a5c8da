// SPDX-License-Identifier: BSD-3-Clause
// PyTorch's other planner: the steps of least cost by its own model (core/torch/min_cost.cpp), with
// consecutive ones joined to one collective over several axes (core/torch/merge.h). PyTorch uses it
// for shard orders and for a _StridedShard that represents one; AutoParallel always uses it.
//
// Its plans are right even if PyTorch's are not. If a strided shard is not quite the shard order
// that PyTorch takes it for, or represents no order at all, the steps are those of the greedy
// planner. And if PyTorch would make other addends of a sum than the request wants, the search is
// repeated without the steps that do so.
#include <algorithm>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/planners/collectives/emit.h"
#include "core/planners/each_tensor.h"
#include "core/torch/merge.h"
#include "core/torch/placement_state.h"
#include "core/torch/redistribution.h"

namespace reshard {
namespace {

// The steps, and how many of them are joined at a time.
struct Steps {
  Layout source;  // with the placements that the steps start from
  std::vector<TorchStep> steps;
  std::vector<std::size_t> joined;
};

Steps one_by_one(const Request& request) {
  std::vector<TorchStep> steps = torch_greedy_steps(request);
  std::vector<std::size_t> joined(steps.size(), 1);
  return {request.source(), std::move(steps), std::move(joined)};
}

Steps least_steps(const Request& request, std::int32_t devices_per_host, Explanation* explanation) {
  auto explain = [&](const char* why) {
    if (explanation != nullptr) explanation->add(why);
  };
  std::optional<OrderedRequest> ordered = as_shard_orders(request);
  if (!ordered) {
    explain("graph: greedy steps, because no shard order is equal to a _StridedShard here");
    return one_by_one(request);
  }
  if (!ordered->exact) {
    explain(
        "graph: greedy steps, because the shard order that PyTorch derives from a _StridedShard is "
        "not what ranks hold");
    return one_by_one(request);
  }
  if (!can_search(*ordered))
    throw InputError(
        fmt::format("expected a tensor with at most {} layouts on the mesh for the min-cost "
                    "search, found {} dims on {} axes",
                    kMaxTorchStates, request.shape().size(), request.source().mesh().axes()));
  std::vector<TorchStep> steps = torch_min_cost_steps(*ordered, devices_per_host);
  if (!make_wanted_addends(*ordered, steps)) {
    explain("graph: not PyTorch's steps, which would make different addends of the same sum");
    steps = torch_min_cost_steps(*ordered, devices_per_host, WantedAddends::AsRequested);
  }
  std::vector<std::size_t> joined = joined_steps(ordered->source, steps);
  return {std::move(ordered->source), std::move(steps), std::move(joined)};
}

// "axis 1: S(0) -> R", "axes 0, 1: P(sum) -> R"; if sum and avg are joined "axes 0: P(sum) -> R, 1:
// P(avg) -> R".
std::string change_text(std::span<const TorchStep> steps) {
  const TorchStep& first = steps[0];
  if (steps.size() == 1)
    return fmt::format("axis {}: {} -> {}", first.axis, text(first.from), text(first.to));
  bool same =
      std::ranges::all_of(steps, [&](const TorchStep& step) { return step.from == first.from; });
  std::string out = "axes ";
  for (const TorchStep& step : steps) {
    out += fmt::format("{}{}", &step == &first ? "" : ", ", step.axis);
    if (!same) out += fmt::format(": {} -> {}", text(step.from), text(step.to));
  }
  if (same) out += fmt::format(": {} -> {}", text(first.from), text(first.to));
  return out + ", a single collective over them";
}

std::string reason(const Steps& all, std::size_t at, std::size_t count) {
  std::span<const TorchStep> steps = std::span(all.steps).subspan(at, count);
  auto is_last = [&](const TorchStep& step) {
    return std::ranges::none_of(std::span(all.steps).subspan(at + count),
                                [&](const TorchStep& later) { return later.axis == step.axis; });
  };
  bool final = std::ranges::all_of(steps, is_last);
  return change_text(steps) +
         (final ? ", as in the destination" : ", on the path of least cost by PyTorch's model");
}

std::vector<Transition> transitions_of(const Request& request, const Steps& all, bool explain) {
  std::vector<Transition> out;
  PlacementState state(all.source);
  std::size_t at = 0;
  for (std::size_t count : all.joined) {
    Transition next{{}, request.destination(), explain ? reason(all, at, count) : std::string()};
    for (const TorchStep& step : std::span(all.steps).subspan(at, count)) {
      state.place(step.axis, step.to);
      next.axes.push_back(step.axis);
    }
    std::ranges::sort(next.axes);
    at += count;
    if (at < all.steps.size()) next.next = state.layout_like(request.source());
    out.push_back(std::move(next));
  }
  // Source and destination are the same under two names.
  if (out.empty() && request.source() != request.destination())
    out.push_back({{}, request.destination(), "a shard order under another name"});
  return out;
}

Plan plan_one_by_graph(const Request& request, const PlannerInput& input) {
  RESHARD_CHECK(input.topology != nullptr, "graph needs to know how many devices a host has");
  if (!request.same_mesh())
    throw InputError(
        fmt::format("expected one mesh on both sides, as in PyTorch, found {} (p2p "
                    "plans between meshes)",
                    request.text()));
  Steps steps = least_steps(request, input.topology->node().devices, input.explanation);
  return emit_plan(request, "graph", transitions_of(request, steps, input.explanation != nullptr),
                   input.explanation);
}

}  // namespace

Plan plan_graph(const Demand& demand, const PlannerInput& input) {
  return plan_each(demand, input, "graph", plan_one_by_graph);
}

}  // namespace reshard
