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
  while (++at.round < step.rounds()) {
    if (step.expansions.empty())
      enter_exchange(step, part, transits);
    else
      enter_collective(step, part, transits);
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

std::int64_t OperationRun::message_bytes(const StepRun& step, std::uint32_t message) const {
  if (step.exchange == nullptr) return single_bytes_;
  const MoveRange& moves = step.exchange->messages[message].moves;
  std::int64_t elements = 0;
  for (std::uint32_t i = 0; i < moves.count; ++i)
    elements += step.exchange->moves.elements(moves.first + i);
  return elements * unit_bytes_;
}

void OperationRun::enter_exchange(const StepRun& step, std::int32_t part,
                                  std::vector<Transit>& transits) {
  auto local = static_cast<std::size_t>(part - step.first_part);
  auto add = [&](std::uint32_t message) {
    std::int32_t source = step.source_parts[message], destination = step.destination_parts[message];
    meet({id_, step_of(part), rank_of(source), rank_of(destination), source, destination,
          message_bytes(step, message)},
         part, transits);
  };
  for (std::uint32_t message = step.first_send[local]; message < step.first_send[local + 1];
       ++message)
    add(message);
  for (std::uint32_t i = step.first_receive[local]; i < step.first_receive[local + 1]; ++i)
    add(step.receives[i]);
}

void OperationRun::enter_collective(const StepRun& step, std::int32_t part,
                                    std::vector<Transit>& transits) {
  std::int32_t n = step.expansions.front().members();
  std::int32_t group = (part - step.first_part) / n, member = (part - step.first_part) % n;
  const Expansion& expansion = step.expansions[static_cast<std::size_t>(group)];
  std::int32_t first = step.first_part + group * n,
               round = parts_[static_cast<std::size_t>(part)].round;
  auto add = [&](std::int64_t number) {
    Transfer transfer = expansion.transfer(number);
    std::int32_t source = first + transfer.source, destination = first + transfer.destination;
    meet({id_, step_of(part), rank_of(source), rank_of(destination), source, destination,
          expansion.elements(transfer) * unit_bytes_},
         part, transits);
  };
  std::int32_t sends = expansion.sends(round, member), receives = expansion.receives(round, member);
  for (std::int32_t k = 0; k < sends; ++k) add(expansion.send(round, member, k));
  for (std::int32_t k = 0; k < receives; ++k) add(expansion.receive(round, member, k));
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
