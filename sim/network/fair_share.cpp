// SPDX-License-Identifier: BSD-3-Clause
#include "sim/network/fair_share.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "core/base/errors.h"

namespace reshard::sim {

FairShare::FairShare(const std::vector<std::int64_t>& capacities, std::int32_t max_hops)
    : stride_(to_index(max_hops)) {
  RESHARD_CHECK(max_hops >= 1, fmt::format("{} hops", max_hops));
  resources_.resize(capacities.size());
  for (std::size_t resource = 0; resource < capacities.size(); ++resource) {
    RESHARD_CHECK(capacities[resource] >= 1, fmt::format("a capacity of {}", capacities[resource]));
    resources_[resource].capacity = capacities[resource];
  }
}

std::span<const ResourceId> FairShare::path(std::int32_t flow) const {
  std::span<const ResourceId> all = std::span(paths_).subspan(to_index(flow) * stride_, stride_);
  std::size_t hops = all.size();
  while (all[hops - 1] == kNoResource) --hops;
  return all.first(hops);
}

void FairShare::add(std::int32_t flow, std::span<const ResourceId> path, std::int64_t cap) {
  auto at = to_index(flow);
  RESHARD_CHECK(!path.empty() && path.size() <= stride_ && cap >= 1,
                fmt::format("{} hops, cap {}", path.size(), cap));
  if (at >= flows_.size()) {
    flows_.resize(at + 1);
    caps_.resize(at + 1);
    paths_.resize((at + 1) * stride_);
    positions_.resize((at + 1) * stride_);
  }
  flows_[at] = {0, 0};
  std::int64_t least_capacity = kNoCap;
  for (std::size_t hop = 0; hop < stride_; ++hop) {
    paths_[at * stride_ + hop] = hop < path.size() ? path[hop] : kNoResource;
    if (hop >= path.size()) continue;
    std::size_t id = to_index(path[hop]);
    Resource& resource = resources_[id];
    positions_[at * stride_ + hop] = static_cast<std::int32_t>(resource.flows.size());
    resource.flows.push_back(flow);
    auto load = static_cast<std::int64_t>(resource.flows.size());
    RESHARD_CHECK(load <= resource.capacity, fmt::format("{} flows on resource {} of {} bytes/s",
                                                         load, id, resource.capacity));
    least_capacity = std::min(least_capacity, resource.capacity);
    keep_below_ = std::min(keep_below_, resource.capacity / load);
    touched_.push_back(id);
  }
  // A cap that no share can reach would only cost time.
  caps_[at] = cap < least_capacity ? cap : kNoCap;
  keep_below_ = std::min(keep_below_, caps_[at]);
}

void FairShare::remove(std::int32_t flow) {
  std::span<const ResourceId> hops = path(flow);
  for (std::size_t hop = 0; hop < hops.size(); ++hop) {
    std::vector<std::int32_t>& flows = resources_[hops[hop]].flows;
    std::int32_t position = positions_[to_index(flow) * stride_ + hop];
    // The last flow of the list takes the position.
    std::int32_t moved = flows.back();
    flows[to_index(position)] = moved;
    flows.pop_back();
    std::size_t place = to_index(moved) * stride_;
    while (paths_[place] != hops[hop]) ++place;
    positions_[place] = position;
    touched_.push_back(to_index(hops[hop]));
  }
  if (flows_[flow].rate > 0) keep_below_ = std::min(keep_below_, flows_[flow].rate);
}

// When the numbers run out, all marks start again.
void FairShare::next_epoch() {
  if (epoch_ == std::numeric_limits<std::int32_t>::max() / 2 - 1) {
    epoch_ = 0;
    for (Resource& resource : resources_) resource.epoch = 0;
    for (Flow& flow : flows_) flow.mark = 0;
  }
  ++epoch_;
}

void FairShare::solve(std::vector<Change>& changes) {
  changes.clear();
  next_epoch();
  for (std::size_t root : touched_) {
    if (resources_[root].epoch == epoch_) continue;
    collect(root);
    fill(changes);
  }
  touched_.clear();
  keep_below_ = kNoCap;
}

// A flow that is to be rated anew brings its resources into the part.
inline void FairShare::enter(std::int32_t flow) {
  flows_[flow].mark = 2 * epoch_;
  if (caps_[flow] != kNoCap) part_capped_.push_back(flow);
  const ResourceId* hop = &paths_[to_index(flow) * stride_];
  for (const ResourceId* end = hop + stride_; hop != end && *hop != kNoResource; ++hop) {
    Resource& next = resources_[*hop];
    if (next.epoch == epoch_) continue;
    next.epoch = epoch_;
    part_resources_.push_back(to_index(*hop));
  }
}

// The part of the network that hangs together with `root` through flows that are rated anew, and
// the capacity that the others leave in it.
void FairShare::collect(std::size_t root) {
  part_resources_.assign(1, root);
  part_capped_.clear();
  resources_[root].epoch = epoch_;
  // A rate of 0, none yet, wraps around and is never kept.
  const auto kept_below = static_cast<std::uint64_t>(keep_below_) - 1;
  const std::int32_t entered = 2 * epoch_;
  for (std::size_t i = 0; i < part_resources_.size(); ++i) {
    Resource& resource = resources_[part_resources_[i]];
    if (chosen_.size() < resource.flows.size()) chosen_.resize(resource.flows.size());
    std::int64_t taken = 0;
    std::size_t kept_count = 0, chosen = 0;
    for (std::int32_t flow : resource.flows) {
      const Flow at = flows_[flow];
      bool kept = static_cast<std::uint64_t>(at.rate) - 1 < kept_below;
      taken += kept ? at.rate : 0;
      kept_count += kept ? 1 : 0;
      chosen_[chosen] = flow;
      chosen += to_index(!kept) & to_index(at.mark != entered);
    }
    resource.rest = resource.capacity - taken;
    resource.free = static_cast<std::int64_t>(resource.flows.size() - kept_count);
    for (std::size_t k = 0; k < chosen; ++k) enter(chosen_[k]);
  }
}

// Makes the heap's top the true bottleneck; false when no flow is free.
bool FairShare::settle_top() {
  while (!heap_.empty()) {
    Offer top = heap_.front();
    const Resource& resource = resources_[top.resource];
    std::int64_t share = resource.free > 0 ? resource.rest / resource.free : 0;
    if (share == top.share) return true;
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
    if (share == 0) continue;
    heap_.push_back({share, top.resource});
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
  return false;
}

inline void FairShare::give(std::int32_t flow, std::int64_t share, std::vector<Change>& changes) {
  const ResourceId* hop = &paths_[to_index(flow) * stride_];
  for (const ResourceId* end = hop + stride_; hop != end && *hop != kNoResource; ++hop) {
    Resource& resource = resources_[*hop];
    resource.rest -= share;
    --resource.free;
  }
  Flow& at = flows_[flow];
  at.mark = 2 * epoch_ + 1;
  if (at.rate != share) changes.push_back({flow, at.rate});
  at.rate = share;
}

void FairShare::give_all(const Resource& bottleneck, std::int64_t share,
                         std::vector<Change>& changes) {
  const std::int32_t free = 2 * epoch_;
  std::size_t chosen = 0;
  for (std::int32_t flow : bottleneck.flows) {
    chosen_[chosen] = flow;
    chosen += to_index(flows_[flow].mark == free);
  }
  for (std::size_t k = 0; k < chosen; ++k) give(chosen_[k], share, changes);
}

// A cap at or below the smallest share comes first. False where there is none.
bool FairShare::give_next_cap(std::int64_t share, std::vector<Change>& changes) {
  while (next_capped_ < part_capped_.size() &&
         flows_[part_capped_[next_capped_]].mark != 2 * epoch_)
    ++next_capped_;
  if (next_capped_ == part_capped_.size()) return false;
  std::int32_t flow = part_capped_[next_capped_];
  std::int64_t cap = caps_[flow];
  if (cap > share) return false;
  give(flow, cap, changes);
  return true;
}

void FairShare::fill(std::vector<Change>& changes) {
  heap_.clear();
  for (std::size_t id : part_resources_) {
    const Resource& resource = resources_[id];
    if (resource.free > 0)
      heap_.push_back({resource.rest / resource.free, static_cast<std::int32_t>(id)});
  }
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());  // smallest on top
  std::sort(part_capped_.begin(), part_capped_.end(), [this](std::int32_t a, std::int32_t b) {
    std::int64_t cap_a = caps_[a], cap_b = caps_[b];
    return cap_a != cap_b ? cap_a < cap_b : a < b;
  });
  next_capped_ = 0;
  while (settle_top()) {
    Offer bottleneck = heap_.front();
    if (give_next_cap(bottleneck.share, changes)) continue;
    give_all(resources_[bottleneck.resource], bottleneck.share, changes);
  }
}

// A resource that limits gives none of its flows more, and has less left than a byte/s for each of
// those that get as much. One of them is the bottleneck that gave the flow its rate.
std::optional<ResourceId> FairShare::limit(std::int32_t flow) const {
  std::int64_t rate = flows_[flow].rate;
  if (rate == caps_[flow]) return std::nullopt;
  std::optional<ResourceId> limit;
  for (ResourceId id : path(flow)) {
    if (limit && *limit < id) continue;
    const Resource& resource = resources_[id];
    std::int64_t rest = resource.capacity, alike = 0, highest = 0;
    for (std::int32_t other : resource.flows) {
      rest -= flows_[other].rate;
      alike += flows_[other].rate == rate ? 1 : 0;
      highest = std::max(highest, flows_[other].rate);
    }
    if (highest == rate && rest < alike) limit = id;
  }
  RESHARD_CHECK(limit.has_value(), fmt::format("nothing limits flow {}", flow));
  return limit;
}

}  // namespace reshard::sim
