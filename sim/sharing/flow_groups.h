// SPDX-License-Identifier: BSD-3-Clause
// Flows that share one rate, and when they finish.
//
// All flows that one resource limits have that resource's share as their rate: they are a *group*.
// When the share changes, every member's finish time moves; but since all members work at one rate,
// the order in which they finish does not. So a group counts the work W(t) that each member has
// done since it joined. A flow that joins stores its *target*, W(now) + its own remaining work, and
// finishes at the first picosecond at which W reaches that. A new rate is then one addition for the
// whole group, however many members it has, and a flow costs something only when it arrives,
// leaves, or changes groups. Members are kept in a heap ordered by target.
//
// W(t) = base + rate x t in 128 bits (in 10^-12 byte, so that rate x time is exact); a rate that
// changes at t moves base by (old rate - new rate) x t. A flow that shares no limiting resource is
// *alone*, a group of one with W(t) = rate x t.
//
// Largest numbers: W <= 2^62 bytes/s x 2^62 ps, and a flow's work is below 2^102.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/ids.h"
#include "core/base/integers.h"
#include "sim/sharing/queues.h"

namespace reshard::sim {

// now + delay. Throws InputError beyond kMaxTimePs.
std::int64_t later_ps(std::int64_t now_ps, Int128 delay_ps);

// When the remaining work, in 10^-12 byte, is done at a rate >= 1. `remaining` must be above 0.
std::int64_t finish_ps(std::int64_t now_ps, Int128 remaining, std::int64_t rate);

// The unit of work.
inline constexpr std::int64_t kUnitsPerByte = 1'000'000'000'000;

class FlowGroups {
 public:
  // In place of a group: the flow has no rate, or is alone.
  static constexpr std::int32_t kNone = -1, kAlone = -2;

  std::int32_t add_group();
  std::int32_t group_count() const { return static_cast<std::int32_t>(groups_.size()); }
  std::int32_t groups_in_use() const { return in_use_; }  // with members
  std::int64_t group_rate(std::int32_t group) const { return groups_[group].rate; }
  void set_rate(std::int32_t group, std::int64_t rate, std::int64_t now_ps);

  // Adds a flow with this work and without a rate. The caller numbers the flows, densely.
  void add(std::int32_t flow, Int128 work);
  std::int32_t group_of(std::int32_t flow) const { return group_of_[flow]; }
  std::int64_t rate(std::int32_t flow) const {
    std::int32_t group = group_of_[flow];
    return group >= 0 ? groups_[group].rate : group == kAlone ? alone_rates_[flow] : 0;
  }
  // Moves a flow from its present state to a group, to being alone at this rate, or to having no
  // rate.
  void join(std::int32_t flow, std::int32_t group, std::int64_t now_ps);
  void set_alone(std::int32_t flow, std::int64_t rate, std::int64_t now_ps);
  void release(std::int32_t flow, std::int64_t now_ps);

  // The work that the flow has done beyond its own; it must have a rate.
  Int128 excess(std::int32_t flow, std::int64_t now_ps) const {
    std::int32_t group = group_of_[flow];
    Int128 done =
        group == kAlone ? Int128{alone_rates_[flow]} * now_ps : groups_[group].work(now_ps);
    return done - targets_[flow];
  }

  // Brings finish times up to date with all calls since the last update.
  void update(std::int64_t now_ps);
  // MinimumTree::kNever when nothing moves.
  std::int64_t next_finish_ps() { return std::min(finishes_.minimum(), alone_finishes_.minimum()); }
  // Appends the flows that finish at the next finish time, which must be now, in no particular
  // order. The caller must release them.
  void find_finished(std::int64_t now_ps, std::vector<std::int32_t>& out);

 private:
  struct Group {
    std::int64_t rate = 0;
    bool outdated = false;
    Int128 base = 0;
    IndexVector<std::size_t, std::int32_t> members;  // a heap, the smallest target on top
    Int128 work(std::int64_t now_ps) const { return base + Int128{rate} * now_ps; }
  };

  void outdate(std::int32_t group);
  void place(Group& group, std::size_t position, std::int32_t flow);
  void rise(Group& group, std::size_t position, std::int32_t flow);
  void sink(Group& group, std::size_t position, std::int32_t flow);

  IndexVector<std::int32_t, Group> groups_;
  std::int32_t in_use_ = 0;
  std::vector<std::int32_t> outdated_;
  MinimumTree finishes_, alone_finishes_;  // by group, by flow
  // By flow.
  IndexVector<std::int32_t, std::int32_t> group_of_, positions_;
  IndexVector<std::int32_t, std::int64_t> alone_rates_;
  IndexVector<std::int32_t, Int128> targets_;  // the remaining work if it has no rate
};

}  // namespace reshard::sim
