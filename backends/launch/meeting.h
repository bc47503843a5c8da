// SPDX-License-Identifier: BSD-3-Clause
// The processes of a job before a library joins them, and beside one: they pass byte strings, ask
// whether all others are still there, and say why they give up.
//
// NCCL tells of a lost peer late or never. So every wait on it also asks the meeting, and a process
// that fails says so before it goes.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "backends/launch/launch.h"
#include "core/plan/executor.h"

namespace reshard::backends::launch {

// The base class is a single process.
class Meeting : public Processes {
 public:
  // Throws BackendError where another process has ended or given up; returns at once where none
  // has.
  virtual void check() {}
  // Tells the others, as far as they can be reached, that this process cannot go on; their next
  // call or check throws with the reason.
  virtual void give_up(const std::string& why) noexcept { static_cast<void>(why); }
};

// Brings the processes of a job together by TCP: rank 0 listens at the meeting place, all others
// try again until it is there, and keep one connection to it. A job of one process needs no place.
// Throws BackendError where not all ranks have come within the limit, which later waits have
// again; InputError where they do not agree about the job.
std::unique_ptr<Meeting> meet(const LaunchedProcess& launch, const MeetingPlace& place,
                              std::chrono::milliseconds limit);

}  // namespace reshard::backends::launch
