// SPDX-License-Identifier: BSD-3-Clause
// A connection between the processes of a job that does not depend on MPI or NCCL: they exchange
// byte strings, check that all others are alive, and send the reason if they give up.
//
// NCCL reports a lost peer late or never. So every wait on NCCL also checks the meeting, and a
// process that fails informs the others before it exits.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "backends/launch/launch.h"
#include "core/plan/executor.h"

namespace reshard::backends::launch {

// The base class is for a job of one process.
class Meeting : public Processes {
 public:
  // Throws BackendError if another process has ended or given up; returns at once otherwise.
  virtual void check() {}
  // Tells the other processes, as far as they can be reached, that this one cannot go on; their
  // next call or check() throws with the reason.
  virtual void give_up(const std::string& why) noexcept { static_cast<void>(why); }
};

// Connects the processes of a job by TCP: rank 0 listens at the meeting place, and every other rank
// retries until it reaches rank 0, then keeps one connection to it. A job of one process needs no
// meeting place. Throws BackendError if some ranks have not arrived within `limit`, which also
// bounds each later wait; throws InputError if the processes disagree about the job.
std::unique_ptr<Meeting> meet(const LaunchedProcess& launch, const MeetingPlace& place,
                              std::chrono::milliseconds limit);

}  // namespace reshard::backends::launch
