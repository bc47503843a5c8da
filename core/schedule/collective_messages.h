// SPDX-License-Identifier: BSD-3-Clause
// What one member does in a collective: the library's own, or messages between all pairs of the
// group with folds in the order that the group declares.
#pragma once

#include <variant>
#include <vector>

#include "core/schedule/rank_schedule.h"

namespace reshard {

struct CollectiveLaunches {
  std::vector<std::variant<LocalWork, Messages, NativeCollective>> works;
  bool in_order;  // each waits for the one before; else they are independent
  Shape scratch;  // of the buffer for operands that arrive, or for what awaits its division
};

class GroupPart {
 public:
  GroupPart(const Plan& plan, const CollectiveStep& step, std::size_t group, std::int32_t member)
      : step_(step),
        group_(step.group(group)),
        member_(member),
        input_(input_of(plan, step, group)),
        output_(output_of(plan, step, group)) {}

  std::span<const Slot> group() const { return group_; }
  // `scratch` -1: the library divides, or there is nothing to divide.
  CollectiveLaunches native(BufferId scratch) const;
  //   all_gather, all_to_all  messages beside a copy of what stays
  //   reduce_scatter          messages, fold
  //   all_reduce              messages with a share of the elements for every member, fold,
  //                           messages with what was folded
  CollectiveLaunches messages(BufferId scratch) const;

 private:
  CollectiveLaunches gathered() const;
  CollectiveLaunches folded(BufferId scratch) const;
  Place place(std::int32_t member, BufferId buffer, const DimVector& lo) const {
    return {group_[to_index(member)], buffer, lo};
  }
  // What of a member's input another needs.
  Box part_for(std::int32_t member) const;
  // `move(i, j)` is what member i sends to member j.
  template <class MoveOf>
  Messages with_all(MoveOf&& move) const;

  const CollectiveStep& step_;
  std::span<const Slot> group_;
  std::int32_t member_;
  Box input_, output_;
};

// Share i of n of a box: a cut along its outermost dim that makes shares nearly even, else along
// that which makes them least uneven. Some may be empty.
Box share_of(const Box& box, std::int64_t i, std::int64_t n);

}  // namespace reshard
