// SPDX-License-Identifier: BSD-3-Clause
#include "sim/sharing/flow_groups.h"

#include <fmt/core.h>

#include "core/base/errors.h"

namespace reshard::sim {

namespace {

// For division, which compilers make faster for unsigned numbers.
__extension__ typedef unsigned __int128 Unsigned128;

}  // namespace

std::int64_t later_ps(std::int64_t now_ps, Int128 delay_ps) {
  if (delay_ps > kMaxTimePs - now_ps)
    throw InputError("simulated time: expected an end within 2^62 ps (53 days), found a later one");
  return now_ps + static_cast<std::int64_t>(delay_ps);
}

std::int64_t finish_ps(std::int64_t now_ps, Int128 remaining, std::int64_t rate) {
  auto divisor = static_cast<std::uint64_t>(rate);
  return later_ps(
      now_ps, static_cast<Int128>((static_cast<Unsigned128>(remaining) + divisor - 1) / divisor));
}

std::int32_t FlowGroups::add_group() {
  groups_.emplace_back();
  return group_count() - 1;
}

void FlowGroups::outdate(std::int32_t group) {
  if (groups_[group].outdated) return;
  groups_[group].outdated = true;
  outdated_.push_back(group);
}

void FlowGroups::set_rate(std::int32_t group, std::int64_t rate, std::int64_t now_ps) {
  Group& at = groups_[group];
  if (at.rate == rate) return;
  at.base += (Int128{at.rate} - rate) * now_ps;
  at.rate = rate;
  outdate(group);
}

void FlowGroups::add(std::int32_t flow, Int128 work) {
  auto at = to_index(flow);
  if (at >= targets_.size()) {
    group_of_.resize(at + 1);
    positions_.resize(at + 1);
    alone_rates_.resize(at + 1);
    targets_.resize(at + 1);
  }
  group_of_[at] = kNone;
  targets_[at] = work;
}

void FlowGroups::release(std::int32_t flow, std::int64_t now_ps) {
  std::int32_t group = group_of_[flow];
  if (group == kNone) return;
  group_of_[flow] = kNone;
  if (group == kAlone) {
    targets_[flow] -= Int128{alone_rates_[flow]} * now_ps;
    alone_finishes_.set(flow, MinimumTree::kNever);
    return;
  }
  Group& at = groups_[group];
  targets_[flow] -= at.work(now_ps);
  auto position = to_index(positions_[flow]);
  if (position == 0) outdate(group);
  std::int32_t last = at.members.back();
  at.members.pop_back();
  in_use_ -= at.members.empty() ? 1 : 0;
  if (last == flow) return;
  sink(at, position, last);
  rise(at, to_index(positions_[last]), last);
}

void FlowGroups::join(std::int32_t flow, std::int32_t group, std::int64_t now_ps) {
  release(flow, now_ps);
  Group& at = groups_[group];
  group_of_[flow] = group;
  targets_[flow] += at.work(now_ps);
  in_use_ += at.members.empty() ? 1 : 0;
  at.members.push_back(flow);
  rise(at, at.members.size() - 1, flow);
  if (positions_[flow] == 0) outdate(group);
}

void FlowGroups::set_alone(std::int32_t flow, std::int64_t rate, std::int64_t now_ps) {
  release(flow, now_ps);
  group_of_[flow] = kAlone;
  alone_rates_[flow] = rate;
  alone_finishes_.set(flow, finish_ps(now_ps, targets_[flow], rate));
  targets_[flow] += Int128{rate} * now_ps;
}

inline void FlowGroups::place(Group& group, std::size_t position, std::int32_t flow) {
  group.members[position] = flow;
  positions_[flow] = static_cast<std::int32_t>(position);
}

void FlowGroups::rise(Group& group, std::size_t position, std::int32_t flow) {
  while (position > 0) {
    std::size_t parent = (position - 1) / 2;
    if (targets_[group.members[parent]] <= targets_[flow]) break;
    place(group, position, group.members[parent]);
    position = parent;
  }
  place(group, position, flow);
}

void FlowGroups::sink(Group& group, std::size_t position, std::int32_t flow) {
  for (std::size_t child; (child = 2 * position + 1) < group.members.size(); position = child) {
    if (child + 1 < group.members.size() &&
        targets_[group.members[child + 1]] < targets_[group.members[child]])
      ++child;
    if (targets_[flow] <= targets_[group.members[child]]) break;
    place(group, position, group.members[child]);
  }
  place(group, position, flow);
}

void FlowGroups::update(std::int64_t now_ps) {
  for (std::int32_t group : outdated_) {
    Group& at = groups_[group];
    at.outdated = false;
    finishes_.set(group,
                  at.members.empty()
                      ? MinimumTree::kNever
                      : finish_ps(now_ps, targets_[at.members.front()] - at.work(now_ps), at.rate));
  }
  outdated_.clear();
}

void FlowGroups::find_finished(std::int64_t now_ps, std::vector<std::int32_t>& out) {
  if (alone_finishes_.minimum() == now_ps) alone_finishes_.find_minimum(out);
  if (finishes_.minimum() != now_ps) return;
  std::vector<std::int32_t> groups;
  finishes_.find_minimum(groups);
  std::vector<std::size_t> open;
  for (std::int32_t group : groups) {
    const Group& at = groups_[group];
    const Int128 work = at.work(now_ps);
    // No descendant of a member that is not done is done.
    open.assign(1, 0);
    while (!open.empty()) {
      std::size_t position = open.back();
      open.pop_back();
      if (position >= at.members.size() || targets_[at.members[position]] > work) continue;
      out.push_back(at.members[position]);
      open.push_back(2 * position + 1);
      open.push_back(2 * position + 2);
    }
  }
}

}  // namespace reshard::sim
