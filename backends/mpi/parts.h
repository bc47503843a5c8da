// SPDX-License-Identifier: BSD-3-Clause
// This rank's launches, made ready once and run again and again: addresses, cuts and communicators
// are settled, so that a run costs little beyond its bytes.
#pragma once

#include <memory>
#include <vector>

#include "backends/host/rank_memory.h"
#include "backends/mpi/traffic.h"
#include "core/schedule/rank_schedule.h"

namespace reshard::backends::mpi {

enum class Work : std::uint8_t { Done, Some };

class Part {
 public:
  virtual ~Part() = default;
  // Begins transfers, all that the part will ever need: both ends of a pair then know them in the
  // same order. Called when everything that the launch waits for is done.
  virtual void issue(Traffic& traffic) { static_cast<void>(traffic); }
  // Does one piece of local work, called between polls, so that messages move on meanwhile. Some:
  // there may be more. Done: none is left in this run; not called again before the next.
  virtual Work work() { return Work::Done; }

  // What the part's transfers raise and lower. It is done when no work is left and this is 0.
  Pending pending = 0;
};

// What a part is made from.
struct PartContext {
  const Plan& plan;
  const Launch& launch;
  host::RankMemory& memory;
  World& world;
  const Traffic& traffic;  // for its chunk limits
  // Of the launch's group, where the collective is MPI's own.
  std::shared_ptr<Communicator> comm;

  int process(Slot other) const { return to_int(plan.rank_of(other)); }
  // Equal on both ends; 0 is not for steps. Messages of one tag are matched in order, those of
  // steps that are under way at a time have tags of their own.
  int tag() const { return 1 + static_cast<int>(launch.step) % world.largest_tag; }
};

std::unique_ptr<Part> make_part(const PartContext& context);
std::unique_ptr<Part> make_native_part(const PartContext& context, const NativeCollective& work);

// Which collectives are MPI's own.
SchedulePolicy schedule_policy(const WorldOptions& options);
// By step, the communicator of this rank's group in it; null where MPI's own collective is not
// taken. Made in the order of the plan; collective over all processes.
std::vector<std::shared_ptr<Communicator>> make_groups(const Plan& plan, World& world);

}  // namespace reshard::backends::mpi
