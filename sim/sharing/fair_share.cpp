// SPDX-License-Identifier: BSD-3-Clause
#include "sim/sharing/fair_share.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/base/errors.h"

namespace reshard::sim {

namespace {

void append(const std::vector<ResourceId>& more, std::vector<ResourceId>& to) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace

FairShare::FairShare(const std::vector<std::int64_t>& capacities, std::size_t max_hops)
    : stride_(max_hops) {
  RESHARD_CHECK(max_hops >= 1, fmt::format("{} hops", max_hops));
  // One more, `nowhere_`, the padding of short paths.
  resources_.resize(capacities.size() + 1);
  rest_.resize(capacities.size() + 1);
  free_.resize(capacities.size() + 1);
  nowhere_ = id_of<ResourceId>(capacities.size());
  for (std::size_t resource = 0; resource < capacities.size(); ++resource) {
    RESHARD_CHECK(capacities[resource] >= 1, fmt::format("a capacity of {}", capacities[resource]));
    resources_[resource].capacity = capacities[resource];
    rest_[resource] = static_cast<std::uint64_t>(capacities[resource]);
  }
}

void FairShare::add(std::int32_t flow, std::span<const ResourceId> path, std::int64_t cap,
                    Int128 work) {
  auto at = to_index(flow);
  RESHARD_CHECK(!path.empty() && path.size() <= stride_ && cap >= 1,
                fmt::format("{} hops, cap {}", path.size(), cap));
  if (at >= caps_.size()) {
    caps_.resize(at + 1);
    entered_.resize(at + 1);
    seats_.resize(at + 1);
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
    RESHARD_CHECK(load(path[hop]) <= resource.capacity,
                  fmt::format("{} flows on resource {} of {} bytes/s", load(path[hop]),
                              to_index(path[hop]), resource.capacity));
    if (load(path[hop]) > most_flows_) {
      most_flows_ = load(path[hop]);
      most_share_ = std::numeric_limits<std::uint64_t>::max() / to_index(most_flows_);
    }
    least_capacity = std::min(least_capacity, resource.capacity);
  }
  // A cap that no share can reach would only cost time.
  caps_[at] = cap < least_capacity ? cap : kNoCap;
  capped_ += caps_[at] != kNoCap ? 1 : 0;
  new_.push_back(flow);
}

void FairShare::set_capacity(ResourceId resource, std::int64_t capacity) {
  RESHARD_CHECK(load(resource) == 0 && capacity >= 1,
                fmt::format("{} flows, a capacity of {}", load(resource), capacity));
  resources_[resource].capacity = capacity;
  rest_[resource] = static_cast<std::uint64_t>(capacity);
}

void FairShare::remove(std::int32_t flow, std::int64_t now_ps) {
  std::int64_t rate = groups_.rate(flow);
  bool shared = false;
  if (rate == 0) std::erase(new_, flow);
  capped_ -= caps_[flow] != kNoCap ? 1 : 0;
  leave(flow, now_ps);
  std::span<const ResourceId> hops = path(flow);
  for (std::size_t hop = 0; hop < hops.size(); ++hop) {
    Resource& resource = resources_[hops[hop]];
    rest_[hops[hop]] += static_cast<std::uint64_t>(rate);
    std::int32_t position = positions_[to_index(flow) * stride_ + hop];
    // The last flow of the list moves into its position.
    std::int32_t moved = resource.flows.back();
    resource.flows[to_index(position)] = moved;
    resource.flows.pop_back();
    if (resource.flows.empty()) continue;
    std::size_t place = to_index(moved) * stride_;
    while (paths_[place] != hops[hop]) ++place;
    positions_[place] = position;
    touched_.push_back(hops[hop]);
    shared = true;
  }
  if (shared && rate > 0) keep_below_ = std::min(keep_below_, rate);
}

// When the numbers run out, all marks are reset.
void FairShare::next_epoch() {
  if (epoch_ == std::numeric_limits<std::int32_t>::max()) {
    epoch_ = 0;
    for (Resource& resource : resources_)
      resource.epoch = resource.new_epoch = resource.open_epoch = 0;
    std::fill(open_.begin(), open_.end(), 0);
    std::fill(entered_.begin(), entered_.end(), 0);
  }
  ++epoch_;
  open_[FlowGroups::kNone + kStates] = epoch_;
}

void FairShare::join(std::int32_t flow, std::int32_t group, std::int64_t now_ps) {
  leave(flow, now_ps);
  Group& to = members_[group];
  seats_[flow] = static_cast<std::int32_t>(to.flows.size());
  to.flows.push_back(flow);
  ++grouped_;
  for_each_hop(flow, [&](ResourceId hop) {
    if (hop != to.limit) to.others.push_back(hop);
  });
  groups_.join(flow, group, now_ps);
}

// The last flow of the group moves into its seat.
void FairShare::leave(std::int32_t flow, std::int64_t now_ps) {
  if (std::int32_t group = groups_.group_of(flow); group >= 0) {
    Group& from = members_[group];
    const std::size_t seat = to_index(seats_[flow]), width = stride_ - 1;
    std::int32_t last = from.flows.back();
    from.flows[seat] = last;
    seats_[last] = static_cast<std::int32_t>(seat);
    std::copy_n(from.others.data() + from.others.size() - width, width,
                from.others.data() + seat * width);
    from.flows.pop_back();
    --grouped_;
    from.others.resize(from.others.size() - width);
  }
  if (groups_.group_of(flow) == FlowGroups::kAlone)
    for (ResourceId hop : path(flow)) {
      Resource& resource = resources_[hop];
      if (--resource.alone == 0) resource.alone_cap = 0;
    }
  groups_.release(flow, now_ps);
}

void FairShare::set_alone(std::int32_t flow, std::int64_t rate, std::int64_t now_ps) {
  for (ResourceId hop : path(flow)) {
    Resource& resource = resources_[hop];
    ++resource.alone;
    resource.alone_cap = std::max(resource.alone_cap, caps_[flow]);
  }
  groups_.set_alone(flow, rate, now_ps);
}

// A flow that shares nothing has its narrowest resource, or its cap, to itself.
bool FairShare::take_alone(std::int32_t flow, std::int64_t now_ps) {
  std::int64_t rate = caps_[flow];
  for (ResourceId hop : path(flow)) {
    if (load(hop) > 1) return false;
    rate = std::min(rate, capacity(hop));
  }
  for (ResourceId hop : path(flow)) {
    rest_[hop] -= static_cast<std::uint64_t>(rate);
    if (changes_) changes_->resources.push_back(hop);
  }
  if (changes_) changes_->relimited.push_back(flow);
  set_alone(flow, rate, now_ps);
  return true;
}

void FairShare::solve(std::int64_t now_ps, Changes* changes) {
  changes_ = changes;
  if (changes) {
    changes->resources.clear();
    changes->relimited.clear();
  }
  next_epoch();
  for (std::int32_t flow : new_) {
    if (take_alone(flow, now_ps)) continue;
    for (ResourceId hop : path(flow)) {
      keep_below_ = std::min(keep_below_, capacity(hop) / load(hop));
      resources_[hop].new_epoch = epoch_;
      touched_.push_back(hop);
    }
  }
  if (whole_ > 0) {
    --whole_;
    solve_all(now_ps);
  } else {
    solve_parts(now_ps);
  }
  new_.clear();
  touched_.clear();
  keep_below_ = kNoCap;
  groups_.update(now_ps);
}

void FairShare::solve_parts(std::int64_t now_ps) {
  filled_.clear();
  for (ResourceId root : touched_) {
    if (load(root) == 0 || resources_[root].epoch == epoch_) continue;
    part_.assign(1, root);
    do {
      collect(now_ps);
      if (2 * part_.size() >= resources_.size()) whole_ = kWhole;
      fill(now_ps);
      if (changes_) append(part_, changes_->resources);
    } while (keep_small_shares());
  }
}

void FairShare::solve_all(std::int64_t now_ps) {
  if (std::none_of(touched_.begin(), touched_.end(),
                   [this](ResourceId id) { return load(id) > 0; }))
    return;
  collect_all(now_ps);
  fill_again(now_ps);
  if (changes_) append(part_, changes_->resources);
}

// ---- which flows are rated again

// The resource gets back the rate of a free flow. Its first free flow makes it a member of the
// part.
inline void FairShare::take_back(ResourceId id, std::int64_t rate) {
  rest_[id] += static_cast<std::uint64_t>(rate);
  if (++free_[id] == 1) part_.push_back(id);
}

// False if the group keeps its rate, has no flows, or is free already.
inline bool FairShare::may_enter(std::int32_t group) const {
  return !is_open(group) && groups_.group_rate(group) >= keep_below_ &&
         !members_[group].flows.empty();
}

void FairShare::enter_group(std::int32_t group) {
  const std::int64_t rate = groups_.group_rate(group);
  const Group& members = members_[group];
  open_[group + kStates] = epoch_;
  freed_ += std::ssize(members.flows);
  for (std::size_t i = members.flows.size(); i > 0; --i) take_back(members.limit, rate);
  for (ResourceId hop : members.others) take_back(hop, rate);
}

void FairShare::enter(std::int32_t flow, std::int64_t now_ps) {
  const std::int64_t rate = groups_.rate(flow);
  entered_[flow] = epoch_;
  leave(flow, now_ps);
  for_each_hop(flow, [&](ResourceId hop) { take_back(hop, rate); });
}

void FairShare::enter_new(ResourceId resource, std::int64_t now_ps) {
  for (std::int32_t flow : resources_[resource].flows)
    if (groups_.group_of(flow) == FlowGroups::kNone && entered_[flow] != epoch_)
      enter(flow, now_ps);
}

void FairShare::enter_alone(ResourceId resource, std::int64_t now_ps) {
  for (std::int32_t flow : resources_[resource].flows)
    if (groups_.group_of(flow) == FlowGroups::kAlone && groups_.rate(flow) >= keep_below_)
      enter(flow, now_ps);
}

// Whether the resource, now that it is filled, leaves its flows that are alone their caps.
bool FairShare::caps_alone(ResourceId id) {
  Resource& at = resources_[id];
  if (at.alone == 0) return true;
  if (at.group < 0 || members_[at.group].flows.empty())
    return rest_[id] >= static_cast<std::uint64_t>(load(id));
  const std::int64_t most = groups_.group_rate(at.group) - load(id);
  if (at.alone_cap <= most) return true;
  at.alone_cap = 0;
  for (std::int32_t flow : at.flows)
    if (groups_.group_of(flow) == FlowGroups::kAlone)
      at.alone_cap = std::max(at.alone_cap, caps_[flow]);
  return at.alone_cap <= most;
}

// Leaves in `part_` the resources that may have too small shares for their flows that are alone;
// these are to be free from now on. False if there are none. Until they are, rates in the part can
// be smaller than any that is kept.
bool FairShare::keep_small_shares() {
  for (ResourceId id : part_)
    if (resources_[id].open_epoch != epoch_ && !caps_alone(id)) {
      resources_[id].open_epoch = epoch_;
      small_.push_back(id);
    }
  if (small_.empty()) return false;
  for (ResourceId id : part_)
    if (std::int32_t group = resources_[id].group; group >= 0 && !members_[group].flows.empty())
      keep_below_ = std::min(keep_below_, groups_.group_rate(group));
  part_.swap(small_);
  small_.clear();
  return true;
}

// Enters the groups that cross the part; false if there are none.
bool FairShare::enter_crossing_groups() {
  bool any = false;
  auto crosses = [this](ResourceId hop) { return free_[hop] > 0; };
  for (std::int32_t group = 0; group < groups_.group_count(); ++group) {
    if (!may_enter(group)) continue;
    const Group& members = members_[group];
    if (!crosses(members.limit) &&
        std::none_of(members.others.begin(), members.others.end(), crosses))
      continue;
    enter_group(group);
    any = true;
  }
  return any;
}

// Extends the part by what is connected to it through flows that are rated again, and collects the
// capacity that the other flows leave in it. Groups lead to the resources that they cross, and
// these to their own groups. Other groups that cross the part are found from the smaller side: by
// checking the flows of its resources, or, if these are many, all remaining groups, hop by hop.
void FairShare::collect(std::int64_t now_ps) {
  constexpr std::int64_t kHopsPerFlow = 2;  // that are checked in the same time
  free_[nowhere_] = kNowhere;
  freed_ = 0;
  std::int64_t flows = 0;  // of the resources of the part from `looked` on
  for (std::size_t entered = 0, looked = 0;;) {
    for (; entered < part_.size(); ++entered) {
      const Resource& resource = resources_[part_[entered]];
      flows += std::ssize(resource.flows);
      if (resource.group >= 0 && may_enter(resource.group)) enter_group(resource.group);
      if (resource.new_epoch == epoch_) enter_new(part_[entered], now_ps);
      if (resource.alone > 0 && (resource.open_epoch == epoch_ || resource.alone_cap == kNoCap))
        enter_alone(part_[entered], now_ps);
    }
    if (looked == part_.size()) return;
    const auto hops = static_cast<std::int64_t>(stride_);
    if (kHopsPerFlow * flows > (grouped_ - freed_) * hops) {
      looked = part_.size();
      flows = 0;
      if (!enter_crossing_groups()) return;
      continue;
    }
    const Resource& resource = resources_[part_[looked++]];
    flows -= std::ssize(resource.flows);
    for (std::int32_t flow : resource.flows)
      if (std::int32_t group = groups_.group_of(flow); group >= 0 && may_enter(group))
        enter_group(group);
  }
}

// Collects all flows that are rated again, connected or not. Nearly all flows are free then, so it
// starts from full resources and subtracts what is kept.
void FairShare::collect_all(std::int64_t now_ps) {
  part_.clear();
  for (ResourceId id{0}; id != nowhere_; id = id_of<ResourceId>(to_index(id) + 1)) {
    rest_[id] = static_cast<std::uint64_t>(resources_[id].capacity);
    free_[id] = load(id);
    if (load(id) > 0) part_.push_back(id);
  }
  for (std::int32_t group = 0; group < groups_.group_count(); ++group) {
    const std::int64_t rate = groups_.group_rate(group);
    if (rate >= keep_below_)
      open_[group + kStates] = epoch_;
    else
      give(members_[group], rate);
  }
  for (ResourceId id : part_)
    if (resources_[id].alone > 0)
      for (std::int32_t flow : resources_[id].flows) {
        if (groups_.group_of(flow) != FlowGroups::kAlone || entered_[flow] == epoch_) continue;
        entered_[flow] = epoch_;
        if (std::int64_t rate = groups_.rate(flow); rate < keep_below_)
          for_each_hop(flow, [&](ResourceId hop) { give(hop, rate); });
        else
          leave(flow, now_ps);
      }
}

std::optional<ResourceId> FairShare::limit(std::int32_t flow) const {
  if (std::int32_t group = groups_.group_of(flow); group >= 0) return members_[group].limit;
  std::int64_t rate = groups_.rate(flow);
  if (rate == caps_[flow]) return std::nullopt;
  std::optional<ResourceId> limit;  // the narrowest, which it has to itself
  for (ResourceId id : path(flow))
    if (capacity(id) == rate && (!limit || id < *limit)) limit = id;
  RESHARD_CHECK(limit.has_value(), fmt::format("nothing limits flow {}", flow));
  return limit;
}

}  // namespace reshard::sim
