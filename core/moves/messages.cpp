// SPDX-License-Identifier: BSD-3-Clause
#include "core/moves/messages.h"

#include <algorithm>

#include "core/base/errors.h"
#include "core/base/grouped.h"

namespace reshard {

void add_fills(FillStep& fill, Slot slot, BufferId buffer, const std::vector<Box>& boxes) {
  if (boxes.size() > kMaxMoves - fill.parts.size())
    throw InputError("expected at most 2^24 boxes of zeros, found more (use fewer ranks or runs)");
  for (const Box& box : boxes) fill.parts.push_back({slot, buffer, box});
}

void sort_parts(ReduceStep& step) {
  std::stable_sort(step.parts.begin(), step.parts.end(),
                   [](const auto& a, const auto& b) { return a.slot < b.slot; });
  std::vector<ReduceStep::Operand> operands;
  operands.reserve(step.operands.size());
  for (ReduceStep::SlotFold& part : step.parts) {
    auto first = step.operands.begin() + part.first_operand;
    part.first_operand = static_cast<std::uint32_t>(operands.size());
    operands.insert(operands.end(), first, first + part.operand_count);
  }
  step.operands = std::move(operands);
}

ExchangeStep MessageSorter::take() {
  // Ascending by source, then by destination, then in the order of addition.
  Grouped<std::uint32_t> by_destination(slots_, [this](auto put) {
    for (std::uint32_t i = 0; i < ends_.size(); ++i) put(to_index(ends_[i].destination), i);
  });
  Grouped<std::uint32_t> by_source(slots_, [&](auto put) {
    for (std::uint32_t i : by_destination.all()) put(to_index(ends_[i].source), i);
  });

  ExchangeStep step;
  step.moves = MoveList(moves_.dims());
  step.moves.reserve(ends_.size());
  for (std::uint32_t i : by_source.all()) {
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
