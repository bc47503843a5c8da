// SPDX-License-Identifier: BSD-3-Clause
#include "sim/network/operation_run.h"

#include <fmt/format.h>

#include "core/base/errors.h"

namespace reshard::sim {

void OperationRun::start_slot(Slot slot, std::vector<std::int32_t>& ready) const {
  auto at = static_cast<std::size_t>(slot);
  for (std::size_t i = first_of_slot_[at]; i < first_of_slot_[at + 1]; ++i)
    if (parts_[static_cast<std::size_t>(of_slot_[i])].waits == 0) ready.push_back(of_slot_[i]);
}

OperationRun::Progress OperationRun::go_on(std::int32_t part, std::int64_t now_ps,
                                           std::vector<Transit>& transits) {
  Part& at = parts_[static_cast<std::size_t>(part)];
  const StepRun& step = steps_[static_cast<std::size_t>(at.step)];
  if (at.round < 0) at.start_ps = now_ps;
  if (duration_ps_ > 0 && at.round < 0) {
    at.round = 0;
    return Progress::Sleeps;
  }
  // A round in which the part has nothing to do is passed over.
  while (++at.round < step.transfers.rounds()) {
    step.transfers.for_each(part - step.first_part, at.round,
                            [&](std::int32_t source, std::int32_t destination, std::int64_t bytes) {
                              source += step.first_part;
                              destination += step.first_part;
                              meet({id_, step_of(part), rank_of(source), rank_of(destination),
                                    source, destination, bytes},
                                   part, transits);
                            });
    if (at.pending > 0) return Progress::Waits;
  }
  return Progress::Done;
}

// A transfer starts when the later of its two ends comes to its round.
void OperationRun::meet(const Transit& transit, std::int32_t part, std::vector<Transit>& transits) {
  Part& at = parts_[static_cast<std::size_t>(part)];
  std::int32_t peer = transit.source_part == part ? transit.destination_part : transit.source_part;
  ++at.pending;
  if (parts_[static_cast<std::size_t>(peer)].round != at.round) return;
  transits.push_back(transit);
  if (transits.size() > static_cast<std::size_t>(kMaxInFlight))
    throw InputError(
        fmt::format("operation {}: expected at most {} transfers at one time, found more",
                    to_index(id_), kMaxInFlight));
}

void OperationRun::finish(std::int32_t part, std::vector<std::int32_t>& ready) {
  const Part& at = parts_[static_cast<std::size_t>(part)];
  --parts_left_[static_cast<std::size_t>(at.slot)];
  for (std::int32_t dependent : steps_[static_cast<std::size_t>(at.step)].dependents) {
    std::int32_t next = part_at(at.slot, dependent);
    if (next >= 0 && --parts_[static_cast<std::size_t>(next)].waits == 0) ready.push_back(next);
  }
}

}  // namespace reshard::sim
