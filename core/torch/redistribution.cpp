// SPDX-License-Identifier: BSD-3-Clause
// Shard orders read from _StridedShard, and what a request costs in PyTorch's model.
#include "core/torch/redistribution.h"

#include <algorithm>

namespace reshard {

namespace {

// Inserts `axis` where the product of the sizes before it is the split factor; false if there is no
// such place.
bool insert_by_factor(const Mesh& mesh, int axis, std::int64_t split_factor,
                      std::vector<int>& order) {
  std::int64_t before = 1;
  for (std::size_t at = 0;; ++at) {
    if (before == split_factor) {
      order.insert(order.begin() + static_cast<std::ptrdiff_t>(at), axis);
      return true;
    }
    if (at == order.size()) return false;
    before *= mesh.axis_size(order[at]);
  }
}

std::optional<Layout> decoded(const Layout& layout) {
  if (!layout.has_strided()) return layout;
  if (!layout.has_default_order()) return std::nullopt;
  std::vector<Placement> placements = layout.placements();
  ShardStacks stacks(to_index(layout.dims()));
  for (int axis = layout.mesh().axes(); axis-- > 0;) {
    const Placement& placement = layout.placement(axis);
    if (!placement.is_shard_like()) continue;
    // No order is the same as a kind of shard that PyTorch does not have.
    if (placement.is_strided() && placement.kind != Placement::Kind::StridedShard)
      return std::nullopt;
    if (!insert_by_factor(layout.mesh(), axis, placement.split_factor, stacks[placement.dim]))
      return std::nullopt;
    placements[to_index(axis)] = Placement::shard(placement.dim);
  }
  return Layout(layout.shape(), layout.dtype(), layout.mesh_ref(), std::move(placements),
                std::move(stacks));
}

// Whether every rank holds the same elements in both.
bool hold_the_same(const Layout& a, const Layout& b) {
  for (int dim = 0; dim < a.dims(); ++dim)
    for (std::int32_t position = 0; position < a.mesh().size(); ++position)
      if (!std::ranges::equal(a.runs(dim, position), b.runs(dim, position))) return false;
  return true;
}

}  // namespace

std::optional<OrderedRequest> as_shard_orders(const Request& request) {
  if (!request.same_mesh()) return std::nullopt;
  std::optional<Layout> source = decoded(request.source()), target = decoded(request.destination());
  if (!source || !target) return std::nullopt;
  auto exact = [](const Layout& own, const Layout& order) {
    return !own.has_strided() || hold_the_same(own, order);
  };
  bool both = exact(request.source(), *source) && exact(request.destination(), *target);
  return OrderedRequest{std::move(*source), std::move(*target), both};
}

namespace {

bool is_plain(const Layout& layout) { return layout.has_default_order() && !layout.has_strided(); }

// PyTorch prices a request at 0 where the source is fully replicated or nothing changes.
bool is_free(const Layout& source, const Layout& target) {
  return source == target || std::ranges::all_of(source.placements(), [](const Placement& p) {
           return p.is_replicate();
         });
}

}  // namespace

bool torch_plans_greedily(const Request& request) {
  return request.same_mesh() && is_plain(request.source()) && is_plain(request.destination());
}

double torch_min_cost_us(const Request& request, std::int32_t devices_per_host) {
  if (!request.same_mesh()) return kInfiniteCost;
  if (is_free(request.source(), request.destination())) return 0.0;
  if (request.source().has_strided() || request.destination().has_strided()) return kInfiniteCost;
  std::optional<OrderedRequest> ordered = as_shard_orders(request);
  if (!ordered || !can_search(*ordered)) return kInfiniteCost;
  return torch_steps_cost_us(ordered->source, torch_min_cost_steps(*ordered, devices_per_host),
                             devices_per_host);
}

double torch_redistribute_cost_us(const Request& request, std::int32_t devices_per_host) {
  if (!torch_plans_greedily(request)) return torch_min_cost_us(request, devices_per_host);
  if (is_free(request.source(), request.destination())) return 0.0;
  return torch_steps_cost_us(request.source(), torch_greedy_steps(request), devices_per_host);
}

}  // namespace reshard
