// SPDX-License-Identifier: BSD-3-Clause
// Gives the free flows of a part their rates.
#include <algorithm>

#include "sim/sharing/fair_share.h"

namespace reshard::sim {

// Adds as candidates the resources and caps that precede the bottleneck for its flows: a share or
// cap at or below its share.
void FairShare::ask(const Group& bottleneck, std::int64_t share) {
  if (!all_offer_more(bottleneck.others, share))
    for (ResourceId hop : bottleneck.others)
      if (offers_less(hop, share + (hop < bottleneck.limit ? 1 : 0))) candidates_.push_back({hop});
  if (capped_ == 0) return;
  for (std::int32_t flow : bottleneck.flows)
    if (caps_[flow] <= share) candidates_.push_back({nowhere_, flow});
}

// A fast sufficient check: false does not mean that some resource offers less.
inline bool FairShare::all_offer_more(std::span<const ResourceId> ids, std::int64_t share) {
  const auto more = static_cast<std::uint64_t>(share + 1);
  if (more > most_share_) return false;
  free_[nowhere_] = 0;
  const std::uint64_t* const rest = rest_.data();
  const std::int64_t* const free = free_.data();
  for (ResourceId id : ids)
    if (more * static_cast<std::uint64_t>(free[to_index(id)]) > rest[to_index(id)]) return false;
  return true;
}

// False if a resource of the flow offers less; it becomes a candidate then.
bool FairShare::give_cap(std::int32_t flow, std::int64_t now_ps) {
  if (!is_open(groups_.group_of(flow))) return true;
  const std::int64_t cap = caps_[flow];
  const std::size_t before = candidates_.size();
  for_each_hop(flow, [&](ResourceId hop) {
    if (offers_less(hop, cap)) candidates_.push_back({hop});
  });
  if (candidates_.size() > before) return false;
  leave(flow, now_ps);
  if (changes_) changes_->relimited.push_back(flow);
  set_alone(flow, cap, now_ps);
  for_each_hop(flow, [&](ResourceId hop) { give(hop, cap); });
  return true;
}

// Collects `count` free flows of the resource that are not in its group.
void FairShare::choose_free(ResourceId limit, std::size_t count) {
  const Resource& at = resources_[limit];
  chosen_.limit = limit;
  chosen_.flows.clear();
  chosen_.others.clear();
  for (auto flow = at.flows.begin(); chosen_.flows.size() < count; ++flow) {
    std::int32_t group = groups_.group_of(*flow);
    if (!is_open(group) || (group >= 0 && group == at.group)) continue;
    chosen_.flows.push_back(*flow);
    for_each_hop(*flow, [&](ResourceId hop) {
      if (hop != limit) chosen_.others.push_back(hop);
    });
  }
}

// The group of a resource, created if it has none. Its flows are no longer free.
std::int32_t FairShare::group_at(ResourceId limit, std::int64_t share, std::int64_t now_ps) {
  std::int32_t& group = resources_[limit].group;
  if (group < 0) {
    group = groups_.add_group();
    open_.push_back(0);
    members_.push_back({limit, {}, {}});
  }
  groups_.set_rate(group, share, now_ps);
  open_[group + kStates] = 0;
  return group;
}

// Gives the resource's free flows its share. False if something precedes it; that becomes a
// candidate then.
bool FairShare::give_all(ResourceId bottleneck, std::int64_t now_ps) {
  if (free_[bottleneck] == 0) return true;
  const std::int64_t share = this->share(bottleneck);
  const std::size_t before = candidates_.size();
  std::size_t others = to_index(free_[bottleneck]);
  if (std::int32_t group = resources_[bottleneck].group; group >= 0 && is_open(group)) {
    others -= members_[group].flows.size();
    ask(members_[group], share);
  }
  choose_free(bottleneck, others);
  ask(chosen_, share);
  if (candidates_.size() > before) return false;
  std::int32_t group = group_at(bottleneck, share, now_ps);
  for (std::int32_t flow : chosen_.flows) {
    join(flow, group, now_ps);
    if (changes_) changes_->relimited.push_back(flow);
  }
  give(members_[group], share);
  filled_.push_back(bottleneck);
  return true;
}

// Fills the resource after everything that precedes it. The chain ends because each has a smaller
// (share, id), or cap, than the one that it precedes.
void FairShare::fill_from(ResourceId resource, std::int64_t now_ps) {
  candidates_.push_back({resource});
  while (!candidates_.empty()) {
    auto [next, flow] = candidates_.back();
    if (flow >= 0 ? give_cap(flow, now_ps) : give_all(next, now_ps)) candidates_.pop_back();
  }
}

// Fills a part in the order of its groups' previous rates.
void FairShare::fill(std::int64_t now_ps) {
  order_.clear();
  for (ResourceId id : part_) {
    resources_[id].epoch = epoch_;
    std::int32_t group = resources_[id].group;
    if (group >= 0 && !members_[group].flows.empty())
      order_.emplace_back(groups_.group_rate(group), id);
  }
  std::sort(order_.begin(), order_.end());
  for (auto [rate, id] : order_) fill_from(id, now_ps);
  for (ResourceId id : part_)
    if (free_[id] > 0) fill_from(id, now_ps);
}

// Fills the whole network in the order of the last time.
void FairShare::fill_again(std::int64_t now_ps) {
  last_filled_.swap(filled_);
  filled_.clear();
  for (ResourceId id : last_filled_)
    if (free_[id] > 0) fill_from(id, now_ps);
  for (ResourceId id : part_)
    if (free_[id] > 0) fill_from(id, now_ps);
}

}  // namespace reshard::sim
