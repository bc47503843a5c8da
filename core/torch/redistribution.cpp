// SPDX-License-Identifier: BSD-3-Clause
#include "core/torch/redistribution.h"

#include <algorithm>
#include <limits>

#include "core/torch/min_cost.h"

namespace reshard {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

bool is_plain(const Layout& layout) { return layout.has_default_order() && !layout.has_strided(); }

// PyTorch looks no further where the source is whole on every rank, or nothing changes.
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
  if (!request.same_mesh()) return kInfinite;
  if (is_free(request.source(), request.destination())) return 0.0;
  std::optional<OrderedRequest> ordered = as_shard_orders(request);
  if (!ordered || !can_search(*ordered)) return kInfinite;
  return torch_steps_cost_us(ordered->source, torch_min_cost_steps(*ordered, devices_per_host),
                             devices_per_host);
}

double torch_redistribute_cost_us(const Request& request, std::int32_t devices_per_host) {
  if (!torch_plans_greedily(request)) return torch_min_cost_us(request, devices_per_host);
  if (is_free(request.source(), request.destination())) return 0.0;
  return torch_steps_cost_us(request.source(), torch_greedy_steps(request), devices_per_host);
}

}  // namespace reshard
