// SPDX-License-Identifier: BSD-3-Clause
#include "core/packing/path_search.h"

#include <algorithm>

namespace reshard {

PathSearch::PathSearch(const RankRoutes& routes)
    : routes_(routes),
      latency_(routes.trunks().size(), 0),
      start_(routes.ranks(), kUnreached),
      is_wanted_(routes.ranks(), 0),
      costs_(routes.ranks(), kUnreached),
      before_(routes.ranks(), -1),
      labels_(routes.trunks().size()),
      touched_(routes.trunks().size()),
      fresh_(routes.ranks()),
      next_(routes.ranks()) {
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
  std::fill(is_wanted_.begin(), is_wanted_.end(), char{0});
}

void PathSearch::add(Slot slot, Price start) {
  if (start_[to_index(slot)] == kUnreached) set_.push_back(slot);
  start_[to_index(slot)] = std::min(start_[to_index(slot)], start);
}

// Offers the trunks that `slot` leads to. Every hop costs something, so what costs as much as the
// nearest wanted rank leads to none that is nearer.
void PathSearch::enter(Slot slot, const Loads& loads, Direction direction) {
  Price cost = costs_[to_index(slot)];
  if (cost >= nearest_) return;
  std::int32_t node = routes_.node_of(slot);
  for (const RankRoutes::AccessLink& link :
       direction == Direction::Outwards ? routes_.up_from(slot) : routes_.down_to(slot)) {
    const Label& label = labels_[to_index(link.trunk)];
    if (cost < (label.node == node ? label.cost : label.other_cost))
      offer(link.trunk, slot, cost + loads.price(link.classes));
  }
}

void PathSearch::offer(std::int32_t trunk, Slot slot, Price cost) {
  Label& label = labels_[to_index(trunk)];
  std::int32_t node = routes_.node_of(slot);
  if (cost < label.cost) {
    if (label.slot >= 0 && label.node != node) {
      label.other_cost = label.cost;
      label.other_slot = label.slot;
    }
    label.cost = cost;
    label.slot = slot;
    label.node = node;
  } else if (cost < label.other_cost && label.slot >= 0 && label.node != node) {
    label.other_cost = cost;
    label.other_slot = slot;
  } else {
    return;
  }
  touched_.add(trunk);
}

void PathSearch::leave(std::int32_t trunk, const Loads& loads, Direction direction) {
  const RankRoutes::Trunk& over = routes_.trunks()[to_index(trunk)];
  const Label label = labels_[to_index(trunk)];
  const Price middle = loads.price(over.classes) + latency_[to_index(trunk)];
  Price nearest = nearest_;
  if (label.cost + middle >= nearest) return;
  for (const RankRoutes::AccessLink& link :
       direction == Direction::Outwards ? routes_.down_from(trunk) : routes_.up_to(trunk)) {
    const std::size_t at = to_index(link.slot);
    // A trunk between nodes does not lead back into the same node.
    const bool other = over.between_nodes && label.node == routes_.node_of(link.slot);
    const Price so_far = (other ? label.other_cost : label.cost) + middle;
    const Price least = std::min(nearest, costs_[at]);
    // A rank in the set already has it, however expensive its path was.
    if (so_far >= least || start_[at] != kUnreached) continue;
    const Slot from = other ? label.other_slot : label.slot;
    if (from < 0 || from == link.slot) continue;
    const Price cost = so_far + loads.price(link.classes);
    if (cost >= costs_[at] || cost > nearest) continue;
    costs_[at] = cost;
    before_[at] = from;
    if (is_wanted_[at] != 0) nearest = cost;
    next_.add(link.slot);
  }
  nearest_ = nearest;
}

void PathSearch::run(const Loads& loads, Direction direction) {
  std::fill(costs_.begin(), costs_.end(), kUnreached);
  std::fill(labels_.begin(), labels_.end(), Label{});
  nearest_ = kUnreached;
  fresh_.clear();
  for (Slot slot : set_) {
    fresh_.add(slot);
    costs_[to_index(slot)] = start_[to_index(slot)];
    before_[to_index(slot)] = -1;
  }
  while (fresh_.count > 0) {
    for (std::size_t i = 0; i < fresh_.count; ++i) enter(fresh_.list[i], loads, direction);
    for (std::size_t i = 0; i < touched_.count; ++i) leave(touched_.list[i], loads, direction);
    touched_.clear();
    fresh_.clear();
    std::swap(fresh_, next_);
  }
}

}  // namespace reshard
