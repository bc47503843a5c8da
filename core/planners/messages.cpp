// SPDX-License-Identifier: BSD-3-Clause
#include "core/planners/messages.h"

#include <numeric>

#include "core/base/errors.h"

namespace reshard {
namespace {

// Stable order of `items` by key(item) in [0, keys).
template <class Key>
std::vector<std::uint32_t> counting_sorted(const std::vector<std::uint32_t>& items,
                                           std::size_t keys, Key&& key) {
  std::vector<std::uint32_t> begin(keys + 1, 0), out(items.size());
  for (std::uint32_t item : items) ++begin[key(item) + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  for (std::uint32_t item : items) out[begin[key(item)]++] = item;
  return out;
}

}  // namespace

void check_size(const MoveList& moves) {
  if (moves.size() >= kMaxMoves)
    throw InputError(
        "p2p: expected a request of at most 2^24 boxes to send, found more (use fewer ranks, or "
        "planner rule)");
}

ExchangeStep Messages::take() {
  std::vector<std::uint32_t> order(ends_.size());
  std::iota(order.begin(), order.end(), 0U);
  order = counting_sorted(order, slots_, [&](std::uint32_t i) {
    return static_cast<std::size_t>(ends_[i].destination);
  });
  order = counting_sorted(
      order, slots_, [&](std::uint32_t i) { return static_cast<std::size_t>(ends_[i].source); });

  ExchangeStep step;
  step.moves = MoveList(moves_.dims());
  step.moves.reserve(order.size());
  for (std::uint32_t i : order) {
    const Ends& ends = ends_[i];
    if (step.messages.empty() || step.messages.back().source != ends.source ||
        step.messages.back().destination != ends.destination)
      step.messages.push_back(
          {ends.source, ends.destination, {static_cast<std::uint32_t>(step.moves.size()), 0}});
    ++step.messages.back().moves.count;
    step.moves.push_back(moves_[i]);
  }
  ends_.clear();
  moves_ = MoveList(moves_.dims());
  return step;
}

CopyStep LocalMoves::take() {
  CopyStep step;
  step.moves = MoveList(moves_.dims());
  step.moves.reserve(moves_.size());
  for (std::size_t slot = 0; slot < by_slot_.size(); ++slot) {
    if (by_slot_[slot].empty()) continue;
    step.parts.push_back({static_cast<Slot>(slot),
                          {static_cast<std::uint32_t>(step.moves.size()),
                           static_cast<std::uint32_t>(by_slot_[slot].size())}});
    for (std::uint32_t i : by_slot_[slot]) step.moves.push_back(moves_[i]);
    by_slot_[slot].clear();
  }
  moves_ = MoveList(moves_.dims());
  return step;
}

}  // namespace reshard
