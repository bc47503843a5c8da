// SPDX-License-Identifier: BSD-3-Clause
#include "sim/network/fair_share.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "core/base/errors.h"

namespace reshard::sim {

FairShare::FairShare(std::vector<std::int64_t> capacities, std::int32_t max_hops)
    : stride_(max_hops), capacities_(std::move(capacities)), flows_on_(capacities_.size()), rooms_(capacities_.size()), resource_marks_(capacities_.size(), 0) {
  RESHARD_CHECK(max_hops >= 1, fmt::format("{} hops", max_hops));
  for (std::int64_t capacity : capacities_) RESHARD_CHECK(capacity >= 1, fmt::format("a capacity of {}", capacity));
}

std::span<const ResourceId> FairShare::path(std::int32_t flow) const {
  auto at = static_cast<std::size_t>(flow);
  return std::span(paths_).subspan(at * static_cast<std::size_t>(stride_), static_cast<std::size_t>(hops_[at]));
}

void FairShare::add(std::int32_t flow, std::span<const ResourceId> path, std::int64_t cap) {
  auto at = static_cast<std::size_t>(flow);
  RESHARD_CHECK(!path.empty() && path.size() <= static_cast<std::size_t>(stride_) && cap >= 1, fmt::format("{} hops, cap {}", path.size(), cap));
  if (at >= rates_.size()) {
    paths_.resize((at + 1) * static_cast<std::size_t>(stride_));
    positions_.resize((at + 1) * static_cast<std::size_t>(stride_));
    for (auto* column : {&hops_, &bottlenecks_}) column->resize(at + 1);
    for (auto* column : {&caps_, &rates_, &flow_marks_}) column->resize(at + 1);
  }
  hops_[at] = static_cast<std::int32_t>(path.size());
  rates_[at] = 0;
  flow_marks_[at] = 0;
  std::int64_t least_capacity = kNoCap;
  for (std::size_t hop = 0; hop < path.size(); ++hop) {
    std::size_t resource = to_index(path[hop]);
    std::vector<std::int32_t>& flows = flows_on_[resource];
    paths_[at * static_cast<std::size_t>(stride_) + hop] = path[hop];
    positions_[at * static_cast<std::size_t>(stride_) + hop] = static_cast<std::int32_t>(flows.size());
    flows.push_back(flow);
    auto load = static_cast<std::int64_t>(flows.size());
    RESHARD_CHECK(load <= capacities_[resource], fmt::format("{} flows on resource {} of {} bytes/s", load, resource, capacities_[resource]));
    least_capacity = std::min(least_capacity, capacities_[resource]);
    keep_below_ = std::min(keep_below_, Level{capacities_[resource] / load, static_cast<std::int32_t>(resource)});
    touched_.push_back(resource);
  }
  // A cap that no share can reach would only cost time.
  caps_[at] = cap < least_capacity ? cap : kNoCap;
  if (caps_[at] != kNoCap) keep_below_ = std::min(keep_below_, Level{cap, -1});
}

void FairShare::remove(std::int32_t flow) {
  auto at = static_cast<std::size_t>(flow);
  for (std::size_t hop = 0; hop < static_cast<std::size_t>(hops_[at]); ++hop) {
    ResourceId resource = paths_[at * static_cast<std::size_t>(stride_) + hop];
    std::vector<std::int32_t>& flows = flows_on_[to_index(resource)];
    std::int32_t position = positions_[at * static_cast<std::size_t>(stride_) + hop];
    // The last flow of the list takes the place.
    auto moved = static_cast<std::size_t>(flows.back());
    flows[static_cast<std::size_t>(position)] = flows.back();
    flows.pop_back();
    std::size_t place = moved * static_cast<std::size_t>(stride_);
    while (paths_[place] != resource) ++place;
    positions_[place] = position;
    touched_.push_back(to_index(resource));
  }
  if (rates_[at] > 0) keep_below_ = std::min(keep_below_, Level{rates_[at], bottlenecks_[at]});
}

bool FairShare::kept(std::size_t flow) const { return rates_[flow] != 0 && Level{rates_[flow], bottlenecks_[flow]} < keep_below_; }

void FairShare::solve(std::vector<Change>& changes) {
  changes.clear();
  ++epoch_;
  for (std::size_t root : touched_) {
    if (resource_marks_[root] == epoch_) continue;
    collect(root);
    fill(changes);
  }
  touched_.clear();
  keep_below_ = kTop;
}

// The part of the network that hangs together with `root` through flows that are rated anew, and the room that the others leave in it.
void FairShare::collect(std::size_t root) {
  part_resources_.assign(1, root);
  part_capped_.clear();
  resource_marks_[root] = epoch_;
  for (std::size_t i = 0; i < part_resources_.size(); ++i) {
    std::size_t resource = part_resources_[i];
    Room room{capacities_[resource], 0};
    for (std::int32_t flow : flows_on_[resource]) {
      auto at = static_cast<std::size_t>(flow);
      if (flow_marks_[at] != 2 * epoch_) {
        if (kept(at)) {
          room.rest -= rates_[at];
          continue;
        }
        flow_marks_[at] = 2 * epoch_;
        if (caps_[at] != kNoCap) part_capped_.push_back(flow);
        for (ResourceId next : path(flow)) {
          if (resource_marks_[to_index(next)] == epoch_) continue;
          resource_marks_[to_index(next)] = epoch_;
          part_resources_.push_back(to_index(next));
        }
      }
      ++room.free;
    }
    rooms_[resource] = room;
  }
}

// Makes the heap's top the true bottleneck; false when no flow is free.
bool FairShare::settle_top() {
  while (!heap_.empty()) {
    Level top = heap_.front();
    const Room& room = rooms_[static_cast<std::size_t>(top.bottleneck)];
    if (room.free > 0 && room.rest / room.free == top.share) return true;
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    if (room.free == 0) {
      heap_.pop_back();
    } else {
      heap_.back().share = room.rest / room.free;
      std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    }
  }
  return false;
}

void FairShare::give(std::int32_t flow, Level level, std::vector<Change>& changes) {
  auto at = static_cast<std::size_t>(flow);
  flow_marks_[at] = 2 * epoch_ + 1;
  for (ResourceId resource : path(flow)) {
    Room& room = rooms_[to_index(resource)];
    room.rest -= level.share;
    --room.free;
  }
  bottlenecks_[at] = level.bottleneck;
  if (rates_[at] == level.share) return;
  changes.push_back({flow, rates_[at]});
  rates_[at] = level.share;
}

void FairShare::fill(std::vector<Change>& changes) {
  heap_.clear();
  for (std::size_t resource : part_resources_) {
    const Room& room = rooms_[resource];
    if (room.free > 0) heap_.push_back({room.rest / room.free, static_cast<std::int32_t>(resource)});
  }
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());  // smallest on top
  std::sort(part_capped_.begin(), part_capped_.end(), [this](std::int32_t a, std::int32_t b) {
    std::int64_t cap_a = caps_[static_cast<std::size_t>(a)], cap_b = caps_[static_cast<std::size_t>(b)];
    return cap_a != cap_b ? cap_a < cap_b : a < b;
  });
  std::size_t next_capped = 0;
  while (settle_top()) {
    Level bottleneck = heap_.front();
    // A cap at or below the smallest share comes first.
    while (next_capped < part_capped_.size() && flow_marks_[static_cast<std::size_t>(part_capped_[next_capped])] != 2 * epoch_) ++next_capped;
    if (next_capped < part_capped_.size()) {
      std::int64_t cap = caps_[static_cast<std::size_t>(part_capped_[next_capped])];
      if (cap <= bottleneck.share) {
        give(part_capped_[next_capped++], {cap, -1}, changes);
        continue;
      }
    }
    for (std::int32_t flow : flows_on_[static_cast<std::size_t>(bottleneck.bottleneck)])
      if (flow_marks_[static_cast<std::size_t>(flow)] == 2 * epoch_) give(flow, bottleneck, changes);
  }
}

}  // namespace reshard::sim
