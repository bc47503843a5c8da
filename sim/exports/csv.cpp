// SPDX-License-Identifier: BSD-3-Clause
// A row per message of every step, for spreadsheets.
#include <iterator>

#include <fmt/core.h>

#include "sim/exports/exports.h"

namespace reshard::sim {

Exported export_csv(const ExportInput& input) {
  const Plan& plan = input.plan;
  Exported out{"step,kind,from,to,bytes,boxes\n"};
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    auto row = [&](Slot from, Slot to, std::int64_t bytes, std::size_t boxes) {
      fmt::format_to(std::back_inserter(out.text), "{},{},{},{},{},{}\n", s, kind_text(step),
                     to_int(plan.rank_of(from)), to_int(plan.rank_of(to)), bytes, boxes);
    };
    auto bytes_of = [&](const MoveList& moves, MoveRange range) {
      std::int64_t bytes = 0;
      for (std::size_t i = range.first; i < std::size_t{range.first} + range.count; ++i)
        bytes += moves.elements(i) * plan.element_bytes(moves.source(i));
      return bytes;
    };
    if (const CopyStep* copy = copy_of(step))
      for (const CopyStep::SlotMoves& part : copy->parts)
        row(part.slot, part.slot, bytes_of(copy->moves, part.moves), part.moves.count);
    if (const ExchangeStep* exchange = exchange_of(step))
      for (const ExchangeStep::Message& message : exchange->messages)
        row(message.source, message.destination, bytes_of(exchange->moves, message.moves),
            message.moves.count);
    // The library decides which rank sends what to which in a collective.
    if (exchange_of(step) == nullptr && copy_of(step) == nullptr)
      for (Slot slot : slots_of(step))
        fmt::format_to(std::back_inserter(out.text), "{},{},,{},,\n", s, kind_text(step),
                       to_int(plan.rank_of(slot)));
  }
  return out;
}

}  // namespace reshard::sim
