// SPDX-License-Identifier: BSD-3-Clause
// This rank's parts of the steps, made ready once and run again and again: addresses, cuts and
// communicators are settled, so that a run costs little beyond its bytes.
#pragma once

#include <memory>
#include <vector>

#include "backends/mpi/memory.h"
#include "backends/mpi/traffic.h"
#include "core/schedule/rank_program.h"

namespace reshard::backends::mpi {

enum class Work : std::uint8_t { Done, Some, Waiting };

class Part {
 public:
  virtual ~Part() = default;
  // Begins transfers, all that the part will ever need: both ends of a pair then know them in the
  // same order. Called when everything that the step waits for on this rank is done.
  virtual void issue(Traffic& traffic) { static_cast<void>(traffic); }
  // Does one piece of local work, called between polls, so that messages move on meanwhile. Some:
  // there may be more. Waiting: there is more once messages have come. Done: none is left in this
  // run; not called again before the next.
  virtual Work work() { return Work::Done; }
  // What the part's transfers raise and lower. It is done when no work is left and `pending` is 0.
  virtual std::vector<const Pending*> awaited() const { return {&pending}; }

  Pending pending = 0;
};

// What a part is made from.
struct PartContext {
  const Plan& plan;
  const RankStep& step;
  Slot slot;
  const LocalMemory& memory;
  World& world;
  const Traffic& traffic;  // for its chunk limits
  // Of the rank's group, where the step is MPI's own collective.
  std::shared_ptr<Communicator> comm;

  const Step& body() const { return plan.steps[to_index(step.step)]; }
  std::int64_t element_bytes() const { return size_bytes(plan.request().dtype()); }
  int process(Slot other) const { return to_int(plan.ranks[static_cast<std::size_t>(other)]); }
  // Equal on both ends; 0 is not for steps. Messages of one tag are matched in order, those of
  // steps that are under way at a time have tags of their own.
  int tag() const { return 1 + static_cast<int>(step.step) % world.largest_tag; }
};

std::unique_ptr<Part> make_local_part(const PartContext& context);  // copy, fill, reduce
std::unique_ptr<Part> make_exchange_part(const PartContext& context);
std::unique_ptr<Part> make_collective_part(const PartContext& context);
// By step, the communicator of this rank's group in it; null where MPI's own collective is not
// taken. Made in the order of the plan; collective over all processes.
std::vector<std::shared_ptr<Communicator>> make_groups(const Plan& plan, World& world);

}  // namespace reshard::backends::mpi
