// SPDX-License-Identifier: BSD-3-Clause
#include "core/packing/path_search.h"

#include <algorithm>

namespace reshard {

PathSearch::PathSearch(const RankRoutes& routes)
    : routes_(routes),
      latency_(routes.trunks().size(), 0),
      start_(routes.ranks(), kUnreached),
      costs_(routes.ranks(), kUnreached),
      before_(routes.ranks(), -1),
      labels_(routes.trunks().size()),
      is_touched_(routes.trunks().size(), false),
      is_next_(routes.ranks(), false) {
  for (const RankRoutes::Trunk& trunk : routes.trunks())
    longest_ps_ = std::max(longest_ps_, trunk.latency_ps);
}

void PathSearch::set_latency_price(Price price) {
  for (std::size_t i = 0; i < latency_.size(); ++i)
    latency_[i] = static_cast<Price>(Int128{price} * routes_.trunks()[i].latency_ps / longest_ps_);
}

void PathSearch::clear() {
  for (Slot slot : set_) start_[to_index(slot)] = kUnreached;
  set_.clear();
}

void PathSearch::add(Slot slot, Price start) {
  if (start_[to_index(slot)] == kUnreached) set_.push_back(slot);
  start_[to_index(slot)] = std::min(start_[to_index(slot)], start);
}

void PathSearch::offer(std::int32_t trunk, Slot slot, Price cost) {
  Label& label = labels_[to_index(trunk)];
  std::int32_t node = routes_.node_of(slot);
  if (cost < label.cost) {
    if (label.slot >= 0 && routes_.node_of(label.slot) != node) {
      label.other_cost = label.cost;
      label.other_slot = label.slot;
    }
    label.cost = cost;
    label.slot = slot;
  } else if (label.slot >= 0 && routes_.node_of(label.slot) != node && cost < label.other_cost) {
    label.other_cost = cost;
    label.other_slot = slot;
  } else {
    return;
  }
  if (!is_touched_[to_index(trunk)]) {
    is_touched_[to_index(trunk)] = true;
    touched_.push_back(trunk);
  }
}

void PathSearch::leave(std::int32_t trunk, const Loads& loads, Direction direction) {
  const RankRoutes::Trunk& at = routes_.trunks()[to_index(trunk)];
  const Label& label = labels_[to_index(trunk)];
  Price middle = loads.price(at.classes) + latency_[to_index(trunk)];
  for (const RankRoutes::AccessLink& link :
       direction == Direction::Outwards ? routes_.down_from(trunk) : routes_.up_to(trunk)) {
    // A trunk between nodes does not lead back into the same node.
    bool other = at.between_nodes && routes_.node_of(label.slot) == routes_.node_of(link.slot);
    Slot from = other ? label.other_slot : label.slot;
    if (from < 0 || from == link.slot) continue;
    Price cost = (other ? label.other_cost : label.cost) + middle + loads.price(link.classes);
    std::size_t at = to_index(link.slot);
    // A rank in the set already has it, however expensive its path was.
    if (cost >= costs_[at] || start_[at] != kUnreached) continue;
    costs_[at] = cost;
    before_[at] = from;
    if (is_next_[at]) continue;
    is_next_[at] = true;
    next_.push_back(link.slot);
  }
}

void PathSearch::run(const Loads& loads, Direction direction) {
  std::fill(costs_.begin(), costs_.end(), kUnreached);
  std::fill(labels_.begin(), labels_.end(), Label{});
  fresh_ = set_;
  for (Slot slot : set_) {
    costs_[to_index(slot)] = start_[to_index(slot)];
    before_[to_index(slot)] = -1;
  }
  while (!fresh_.empty()) {
    for (Slot slot : fresh_)
      for (const RankRoutes::AccessLink& link :
           direction == Direction::Outwards ? routes_.up_from(slot) : routes_.down_to(slot))
        offer(link.trunk, slot, costs_[to_index(slot)] + loads.price(link.classes));
    for (std::int32_t trunk : touched_) {
      leave(trunk, loads, direction);
      is_touched_[to_index(trunk)] = false;
    }
    touched_.clear();
    fresh_.swap(next_);
    next_.clear();
    for (Slot slot : fresh_) is_next_[to_index(slot)] = false;
  }
}

}  // namespace reshard
