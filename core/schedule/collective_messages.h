// SPDX-License-Identifier: BSD-3-Clause
// What one member does in a collective: call the library's own collective, or exchange messages
// between all pairs of the group and fold in the group's order.
#pragma once

#include <variant>
#include <vector>

#include "core/schedule/rank_schedule.h"

namespace reshard {

struct CollectiveLaunches {
  std::vector<std::variant<LocalWork, Messages, NativeCollective>> works;
  bool in_order;  // each waits for the one before it; else they are independent
  Shape scratch;  // shape of the buffer for arriving operands or for values to be divided
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
  //   all_gather, all_to_all  messages, and independently a copy of what stays
  //   reduce_scatter          messages, then a fold
  //   all_reduce              messages that bring every member its share of the elements, a fold,
  //                           messages with the results
  CollectiveLaunches messages(BufferId scratch) const;

 private:
  CollectiveLaunches gathered() const;
  CollectiveLaunches folded(BufferId scratch) const;
  Place place(std::int32_t member, BufferId buffer, const DimVector& lo) const {
    return {group_[to_index(member)], buffer, lo};
  }
  // The part of a member's input that another member needs.
  Box part_for(std::int32_t member) const;
  // `move(i, j)` is what member i sends to member j.
  template <class MoveOf>
  Messages with_all(MoveOf&& move) const;

  const CollectiveStep& step_;
  std::span<const Slot> group_;
  std::int32_t member_;
  Box input_, output_;
};

// Share i of n of a box, cut along the outermost dim that gives nearly even shares, else along the
// dim that gives the least uneven ones. Some shares can be empty.
Box share_of(const Box& box, std::int64_t i, std::int64_t n);

}  // namespace reshard
