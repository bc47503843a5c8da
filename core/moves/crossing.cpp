// SPDX-License-Identifier: BSD-3-Clause
#include "core/moves/crossing.h"

#include <utility>

#include "core/moves/linked_runs.h"
#include "core/moves/messages.h"

namespace reshard {

Crossing::Crossing(const Request& request_in, std::string planner)
    : request(request_in),
      plan(request_in, std::move(planner)),
      zero_axes(request_in),
      overlaps(overlaps_of(request_in, zero_axes)),
      source_cells(request_in.source()),
      destination_cells(request_in.destination()),
      standings_(plan.slot_count()) {
  const Layout& layout = request.source();
  for (std::int32_t position = 0; position < layout.mesh().size(); ++position) {
    Slot slot = plan.slot_of(layout.mesh().rank_at(position));
    source_slot.push_back(slot);
    MeshCoordinate coordinate = layout.mesh().coordinate(position);
    std::int32_t base = 0;
    for (int d = 0; d < layout.dims(); ++d)
      base += source_cells.base(d, layout.piece_of(d, coordinate));
    standings_[to_index(slot)] = Standing{base, request.addend_of(position)};
  }
  for (Rank rank : request.destination().mesh().ranks())
    destination_slot.push_back(plan.slot_of(rank));
}

FillStep Crossing::zeros() const {
  FillStep out;
  if (zero_axes.none()) return out;
  const Layout& layout = request.destination();
  LinkedRuns values(dims());
  std::vector<Box> rest;
  for (Slot slot = 0; slot < static_cast<Slot>(plan.slot_count()); ++slot) {
    std::optional<std::int32_t> position = layout.mesh().position_of(plan.rank_of(slot));
    if (!position) continue;
    MeshCoordinate coordinate = layout.mesh().coordinate(*position);
    for (int d = 0; d < dims(); ++d) {
      values.clear(d);
      each_shared(zero_axes.runs(d, zero_axes.share_of(d, coordinate)), layout.runs(d, *position),
                  [&](std::int64_t share_lo, std::int64_t own_lo, std::int64_t size) {
                    values.add(d, share_lo, own_lo, size);
                  });
    }
    values.push_rest(layout.local_shape(*position), 0, rest);
    add_fills(out, slot, kDestinationBuffer, rest);
    rest.clear();
  }
  return out;
}

}  // namespace reshard
