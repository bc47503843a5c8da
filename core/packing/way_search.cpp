// SPDX-License-Identifier: BSD-3-Clause
#include "core/packing/way_search.h"

#include <algorithm>

namespace reshard {

WaySearch::WaySearch(const Roads& roads)
    : roads_(roads),
      latency_(roads.crossings().size(), 0),
      start_(roads.ranks(), kUnreached),
      costs_(roads.ranks(), kUnreached),
      before_(roads.ranks(), -1),
      labels_(roads.crossings().size()),
      is_touched_(roads.crossings().size(), false),
      is_next_(roads.ranks(), false) {
  for (const Roads::Crossing& crossing : roads.crossings())
    longest_ps_ = std::max(longest_ps_, crossing.latency_ps);
}

void WaySearch::set_latency_price(Price price) {
  for (std::size_t i = 0; i < latency_.size(); ++i)
    latency_[i] =
        static_cast<Price>(Int128{price} * roads_.crossings()[i].latency_ps / longest_ps_);
}

void WaySearch::clear() {
  for (Slot slot : set_) start_[to_index(slot)] = kUnreached;
  set_.clear();
}

void WaySearch::add(Slot slot, Price start) {
  if (start_[to_index(slot)] == kUnreached) set_.push_back(slot);
  start_[to_index(slot)] = std::min(start_[to_index(slot)], start);
}

void WaySearch::offer(std::int32_t crossing, Slot slot, Price cost) {
  Label& label = labels_[to_index(crossing)];
  std::int32_t node = roads_.node_of(slot);
  if (cost < label.cost) {
    if (label.slot >= 0 && roads_.node_of(label.slot) != node) {
      label.other_cost = label.cost;
      label.other_slot = label.slot;
    }
    label.cost = cost;
    label.slot = slot;
  } else if (label.slot >= 0 && roads_.node_of(label.slot) != node && cost < label.other_cost) {
    label.other_cost = cost;
    label.other_slot = slot;
  } else {
    return;
  }
  if (!is_touched_[to_index(crossing)]) {
    is_touched_[to_index(crossing)] = true;
    touched_.push_back(crossing);
  }
}

void WaySearch::leave(std::int32_t crossing, const Loads& loads, Direction direction) {
  const Roads::Crossing& road = roads_.crossings()[to_index(crossing)];
  const Label& label = labels_[to_index(crossing)];
  Price middle = loads.price(road.tolls) + latency_[to_index(crossing)];
  for (const Roads::Ramp& ramp :
       direction == Direction::Outwards ? roads_.down_from(crossing) : roads_.up_to(crossing)) {
    // Between nodes there is no way back into the same node.
    bool other = road.between_nodes && roads_.node_of(label.slot) == roads_.node_of(ramp.slot);
    Slot from = other ? label.other_slot : label.slot;
    if (from < 0 || from == ramp.slot) continue;
    Price cost = (other ? label.other_cost : label.cost) + middle + loads.price(ramp.tolls);
    std::size_t at = to_index(ramp.slot);
    // Who is in the set has it already, however dear the way to it was.
    if (cost >= costs_[at] || start_[at] != kUnreached) continue;
    costs_[at] = cost;
    before_[at] = from;
    if (is_next_[at]) continue;
    is_next_[at] = true;
    next_.push_back(ramp.slot);
  }
}

void WaySearch::run(const Loads& loads, Direction direction) {
  std::fill(costs_.begin(), costs_.end(), kUnreached);
  std::fill(labels_.begin(), labels_.end(), Label{});
  fresh_ = set_;
  for (Slot slot : set_) {
    costs_[to_index(slot)] = start_[to_index(slot)];
    before_[to_index(slot)] = -1;
  }
  while (!fresh_.empty()) {
    for (Slot slot : fresh_)
      for (const Roads::Ramp& ramp :
           direction == Direction::Outwards ? roads_.up_from(slot) : roads_.down_to(slot))
        offer(ramp.crossing, slot, costs_[to_index(slot)] + loads.price(ramp.tolls));
    for (std::int32_t crossing : touched_) {
      leave(crossing, loads, direction);
      is_touched_[to_index(crossing)] = false;
    }
    touched_.clear();
    fresh_.swap(next_);
    next_.clear();
    for (Slot slot : fresh_) is_next_[to_index(slot)] = false;
  }
}

}  // namespace reshard
