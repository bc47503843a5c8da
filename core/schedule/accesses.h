// SPDX-License-Identifier: BSD-3-Clause
// Which buffers of which ranks a step reads and writes.
#pragma once

#include "core/plan/plan.h"

namespace reshard {

// Calls visit(buffer, slot, is_write) for every access of a step.
template <class Visit>
void for_each_access(const Step& step, Visit&& visit) {
  if (const auto* copy = std::get_if<CopyStep>(&step.body)) {
    for (const CopyStep::Part& part : copy->parts)
      for (std::uint32_t i = part.moves.first; i < part.moves.first + part.moves.count; ++i) {
        Move move = copy->moves[i];
        visit(move.source, part.slot, false);
        visit(move.destination, part.slot, true);
      }
  } else if (const auto* fill = std::get_if<FillStep>(&step.body)) {
    for (const FillStep::Part& part : fill->parts) visit(part.buffer, part.slot, true);
  } else if (const auto* exchange = std::get_if<ExchangeStep>(&step.body)) {
    for (const ExchangeStep::Message& message : exchange->messages)
      for (std::uint32_t i = message.moves.first; i < message.moves.first + message.moves.count;
           ++i) {
        Move move = exchange->moves[i];
        visit(move.source, message.source, false);
        visit(move.destination, message.destination, true);
      }
  } else if (const auto* collective = std::get_if<CollectiveStep>(&step.body)) {
    for (Slot slot : collective->members) {
      visit(collective->input, slot, false);
      visit(collective->output, slot, true);
    }
  } else {
    const auto& reduce = std::get<ReduceStep>(step.body);
    for (const ReduceStep::Part& part : reduce.parts) {
      for (std::uint32_t k = 0; k < part.operand_count; ++k)
        visit(reduce.operands[part.first_operand + k].buffer, part.slot, false);
      visit(part.destination, part.slot, true);
    }
  }
}

}  // namespace reshard
