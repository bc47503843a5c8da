// SPDX-License-Identifier: BSD-3-Clause
// The processes of a job as the NCCL backend needs them: beside moving byte strings, one asks
// whether all others are still there, and says why it gives up.
//
// NCCL tells of a lost peer late or never. So every wait of this backend also asks the meeting, and
// a process that fails says so before it goes.
#pragma once

#include <string>

#include "core/plan/executor.h"

namespace reshard::backends::nccl {

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

}  // namespace reshard::backends::nccl
