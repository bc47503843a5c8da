// SPDX-License-Identifier: BSD-3-Clause
#include "sim/sharing/fair_share.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "core/base/errors.h"

namespace reshard::sim {

FairShare::FairShare(const std::vector<std::int64_t>& capacities, std::size_t max_hops)
    : stride_(max_hops) {
  RESHARD_CHECK(max_hops >= 1, fmt::format("{} hops", max_hops));
  // One more, where short paths end: it is never without free flows, so never of a part.
  resources_.resize(capacities.size() + 1);
  offers_.resize(capacities.size() + 1);
  nowhere_ = id_of<ResourceId>(capacities.size());
  offers_[nowhere_].free = std::int64_t{1} << 62;
  for (std::size_t resource = 0; resource < capacities.size(); ++resource) {
    RESHARD_CHECK(capacities[resource] >= 1, fmt::format("a capacity of {}", capacities[resource]));
    resources_[resource].capacity = capacities[resource];
    offers_[resource].rest = static_cast<std::uint64_t>(capacities[resource]);
  }
}

std::span<const ResourceId> FairShare::path(std::int32_t flow) const {
  std::span<const ResourceId> all = std::span(paths_).subspan(to_index(flow) * stride_, stride_);
  std::size_t hops = all.size();
  while (all[hops - 1] == nowhere_) --hops;
  return all.first(hops);
}

void FairShare::add(std::int32_t flow, std::span<const ResourceId> path, std::int64_t cap,
                    Int128 work) {
  auto at = to_index(flow);
  RESHARD_CHECK(!path.empty() && path.size() <= stride_ && cap >= 1,
                fmt::format("{} hops, cap {}", path.size(), cap));
  if (at >= caps_.size()) {
    caps_.resize(at + 1);
    entered_.resize(at + 1);
    paths_.resize((at + 1) * stride_);
    positions_.resize((at + 1) * stride_);
  }
  groups_.add(flow, work);
  std::int64_t least_capacity = kNoCap;
  for (std::size_t hop = 0; hop < stride_; ++hop) {
    paths_[at * stride_ + hop] = hop < path.size() ? path[hop] : nowhere_;
    if (hop >= path.size()) continue;
    Resource& resource = resources_[path[hop]];
    positions_[at * stride_ + hop] = static_cast<std::int32_t>(resource.flows.size());
    resource.flows.push_back(flow);
    ++resource.outsiders;
    RESHARD_CHECK(load(path[hop]) <= resource.capacity,
                  fmt::format("{} flows on resource {} of {} bytes/s", load(path[hop]),
                              to_index(path[hop]), resource.capacity));
    least_capacity = std::min(least_capacity, resource.capacity);
  }
  // A cap that no share can reach would only cost time.
  caps_[at] = cap < least_capacity ? cap : kNoCap;
  capped_ += caps_[at] != kNoCap ? 1 : 0;
  new_.push_back(flow);
}

void FairShare::remove(std::int32_t flow, std::int64_t now_ps) {
  std::int64_t rate = groups_.rate(flow);
  bool outside = groups_.group_of(flow) < 0, shared = false;
  if (rate == 0) std::erase(new_, flow);
  capped_ -= caps_[flow] != kNoCap ? 1 : 0;
  groups_.release(flow, now_ps);
  std::span<const ResourceId> hops = path(flow);
  for (std::size_t hop = 0; hop < hops.size(); ++hop) {
    Resource& resource = resources_[hops[hop]];
    offers_[hops[hop]].rest += static_cast<std::uint64_t>(rate);
    resource.outsiders -= outside ? 1 : 0;
    std::int32_t position = positions_[to_index(flow) * stride_ + hop];
    // The last flow of the list takes the position.
    std::int32_t moved = resource.flows.back();
    resource.flows[to_index(position)] = moved;
    resource.flows.pop_back();
    std::size_t place = to_index(moved) * stride_;
    while (paths_[place] != hops[hop]) ++place;
    positions_[place] = position;
    if (resource.flows.empty()) continue;
    touched_.push_back(hops[hop]);
    shared = true;
  }
  if (shared && rate > 0) keep_below_ = std::min(keep_below_, rate);
}

// When the numbers run out, all marks start again.
void FairShare::next_epoch() {
  if (epoch_ == std::numeric_limits<std::int32_t>::max()) {
    epoch_ = 0;
    for (Resource& resource : resources_) resource.epoch = 0;
    std::fill(open_.begin(), open_.end(), 0);
    std::fill(entered_.begin(), entered_.end(), 0);
  }
  ++epoch_;
  open_[FlowGroups::kNone + kStates] = epoch_;
}

// A flow that shares nothing has its narrowest resource, or its cap, to itself.
bool FairShare::take_alone(std::int32_t flow, std::int64_t now_ps) {
  std::int64_t rate = caps_[flow];
  for (ResourceId hop : path(flow)) {
    if (load(hop) > 1) return false;
    rate = std::min(rate, capacity(hop));
  }
  for (ResourceId hop : path(flow)) {
    offers_[hop].rest -= static_cast<std::uint64_t>(rate);
    if (changed_) changed_->push_back(hop);
  }
  groups_.set_alone(flow, rate, now_ps);
  return true;
}

void FairShare::solve(std::int64_t now_ps, std::vector<ResourceId>* changed) {
  changed_ = changed;
  if (changed) changed->clear();
  next_epoch();
  for (std::int32_t flow : new_) {
    if (take_alone(flow, now_ps)) continue;
    keep_below_ = std::min(keep_below_, caps_[flow]);
    for (ResourceId hop : path(flow)) {
      keep_below_ = std::min(keep_below_, capacity(hop) / load(hop));
      touched_.push_back(hop);
    }
  }
  for (ResourceId root : touched_) {
    if (resources_[root].epoch == epoch_) continue;
    collect(root, now_ps);
    fill(now_ps);
    if (changed) changed->insert(changed->end(), part_.begin(), part_.end());
  }
  new_.clear();
  touched_.clear();
  keep_below_ = kNoCap;
  groups_.update(now_ps);
}

// ---- which flows are rated anew

// The resource gets back what a free flow had. With its first one it is of the part.
inline void FairShare::take_back(ResourceId id, std::int64_t rate) {
  Offered& resource = offers_[id];
  resource.rest += static_cast<std::uint64_t>(rate);
  if (resource.free++ == 0) part_.push_back(id);
}

// False where it is kept, has no flows, or is free already.
inline bool FairShare::may_enter(std::int32_t group) const {
  return !is_open(group) && groups_.group_rate(group) >= keep_below_ &&
         !groups_.members(group).empty();
}

void FairShare::enter_group(std::int32_t group) {
  std::int64_t rate = groups_.group_rate(group);
  std::span<const std::int32_t> members = groups_.members(group);
  open_[group + kStates] = epoch_;
  ResourceId limit = limits_[group];
  take_back(limit, rate);
  auto others = static_cast<std::int64_t>(members.size() - 1);
  offers_[limit].rest += static_cast<std::uint64_t>(rate * others);
  offers_[limit].free += others;
  for_each_other_hop(members, limit, [&](ResourceId hop) { take_back(hop, rate); });
  if (capped_ > 0)
    for (std::int32_t flow : members)
      if (caps_[flow] != kNoCap) part_capped_.push_back(flow);
}

void FairShare::enter_outsiders(ResourceId resource, std::int64_t now_ps) {
  for (std::int32_t flow : resources_[resource].flows) {
    if (groups_.group_of(flow) >= 0 || entered_[flow] == epoch_) continue;
    std::int64_t rate = groups_.rate(flow);
    if (rate >= keep_below_ || rate == 0) {
      entered_[flow] = epoch_;
      groups_.release(flow, now_ps);
      for_each_hop(flow, [&](ResourceId hop) { take_back(hop, rate); });
      if (caps_[flow] != kNoCap) part_capped_.push_back(flow);
    }
  }
}

// Enters the groups that cross the part; false where there are none.
bool FairShare::enter_crossing_groups() {
  bool any = false;
  auto crosses = [this](std::int32_t flow) {
    bool out = false;
    for_each_hop(flow,
                 [&](ResourceId hop) { out = out || (hop != nowhere_ && offers_[hop].free > 0); });
    return out;
  };
  for (std::int32_t group = 0; group < groups_.group_count(); ++group) {
    if (!may_enter(group)) continue;
    std::span<const std::int32_t> members = groups_.members(group);
    if (std::none_of(members.begin(), members.end(), crosses)) continue;
    enter_group(group);
    any = true;
  }
  return any;
}

// The part of the network that hangs together with `root` through flows that are rated anew, and
// the capacity that the others leave in it. Groups lead to the resources that they cross, and these
// to their own groups. What else crosses them is found from the smaller side: a large part is
// compared with the groups that are left, of a small one every resource's flows are looked at.
void FairShare::collect(ResourceId root, std::int64_t now_ps) {
  part_.assign(1, root);
  part_capped_.clear();
  for (std::size_t entered = 0, looked = 0;;) {
    for (; entered < part_.size(); ++entered) {
      const Resource& resource = resources_[part_[entered]];
      if (resource.group >= 0 && may_enter(resource.group)) enter_group(resource.group);
      if (resource.outsiders > 0) enter_outsiders(part_[entered], now_ps);
    }
    if (8 * part_.size() >= to_index(groups_.groups_in_use())) {
      if (!enter_crossing_groups()) return;
      continue;
    }
    if (looked == part_.size()) return;
    for (std::int32_t flow : resources_[part_[looked++]].flows)
      if (std::int32_t group = groups_.group_of(flow); group >= 0 && may_enter(group))
        enter_group(group);
  }
}

// ---- filling

// Makes the heap's top the true bottleneck; false when no flow is free.
bool FairShare::settle_top() {
  while (!heap_.empty()) {
    Offer top = heap_.front();
    const Offered& offered = offers_[resource_of(top)];
    if (offered.free == 0) {
      top = heap_.back();
      heap_.pop_back();
      if (heap_.empty()) return false;
    } else {
      std::int64_t share = offered.share();
      if (share == share_of(top)) return true;
      top = offer(share, resource_of(top));
    }
    sink(top);
  }
  return false;
}

// The offer takes the place of the heap's top.
inline void FairShare::sink(Offer offer) {
  std::size_t position = 0, size = heap_.size();
  for (std::size_t child; (child = 2 * position + 1) < size; position = child) {
    if (child + 1 < size) child += to_index(heap_[child + 1] < heap_[child]);
    if (offer < heap_[child]) break;
    heap_[position] = heap_[child];
  }
  heap_[position] = offer;
}

inline void FairShare::give(ResourceId id, std::int64_t share) {
  Offered& resource = offers_[id];
  resource.rest -= static_cast<std::uint64_t>(share);
  --resource.free;
}

// A cap at or below the smallest share comes first. False where there is none.
bool FairShare::give_next_cap(std::int64_t share, std::int64_t now_ps) {
  while (next_capped_ < part_capped_.size() &&
         !is_open(groups_.group_of(part_capped_[next_capped_])))
    ++next_capped_;
  if (next_capped_ == part_capped_.size()) return false;
  std::int32_t flow = part_capped_[next_capped_];
  std::int64_t cap = caps_[flow];
  if (cap > share) return false;
  if (groups_.group_of(flow) >= 0)
    for_each_hop(flow, [&](ResourceId hop) { ++resources_[hop].outsiders; });
  groups_.set_alone(flow, cap, now_ps);
  for_each_hop(flow, [&](ResourceId hop) { give(hop, cap); });
  return true;
}

void FairShare::give_all(ResourceId bottleneck, std::int64_t share, std::int64_t now_ps) {
  Resource& at = resources_[bottleneck];
  if (at.group < 0) {
    at.group = groups_.add_group();
    open_.push_back(0);
    limits_.push_back(bottleneck);
  }
  groups_.set_rate(at.group, share, now_ps);
  Offered& offer = offers_[bottleneck];
  open_[at.group + kStates] = 0;
  if (to_index(offer.free) > groups_.members(at.group).size()) {
    chosen_.resize(std::max(chosen_.size(), at.flows.size()));
    std::size_t chosen = 0;
    for (std::int32_t flow : at.flows) {
      chosen_[chosen] = flow;
      chosen += to_index(is_open(groups_.group_of(flow)));
    }
    for (std::int32_t flow : std::span(chosen_).first(chosen)) {
      if (groups_.group_of(flow) < 0)
        for_each_hop(flow, [&](ResourceId hop) { --resources_[hop].outsiders; });
      groups_.join(flow, at.group, now_ps);
    }
  }
  offer.rest -= static_cast<std::uint64_t>(share * offer.free);
  offer.free = 0;
  for_each_other_hop(groups_.members(at.group), bottleneck,
                     [&](ResourceId hop) { give(hop, share); });
}

void FairShare::fill(std::int64_t now_ps) {
  heap_.clear();
  for (ResourceId id : part_) {
    resources_[id].epoch = epoch_;
    const Offered& resource = offers_[id];
    if (resource.free > 0) heap_.push_back(offer(resource.share(), id));
  }
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());  // smallest on top
  std::sort(part_capped_.begin(), part_capped_.end(), [this](std::int32_t a, std::int32_t b) {
    std::int64_t cap_a = caps_[a], cap_b = caps_[b];
    return cap_a != cap_b ? cap_a < cap_b : a < b;
  });
  next_capped_ = 0;
  while (settle_top()) {
    Offer bottleneck = heap_.front();
    if (give_next_cap(share_of(bottleneck), now_ps)) continue;
    give_all(resource_of(bottleneck), share_of(bottleneck), now_ps);
  }
}

std::optional<ResourceId> FairShare::limit(std::int32_t flow) const {
  if (std::int32_t group = groups_.group_of(flow); group >= 0) return limits_[group];
  std::int64_t rate = groups_.rate(flow);
  if (rate == caps_[flow]) return std::nullopt;
  std::optional<ResourceId> limit;  // the narrowest, which is its alone
  for (ResourceId id : path(flow))
    if (capacity(id) == rate && (!limit || id < *limit)) limit = id;
  RESHARD_CHECK(limit.has_value(), fmt::format("nothing limits flow {}", flow));
  return limit;
}

}  // namespace reshard::sim
