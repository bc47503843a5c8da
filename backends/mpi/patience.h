// SPDX-License-Identifier: BSD-3-Clause
// Waiting by polling, with a limit. MPI's blocking calls would wait for ever for a process that has
// died, and they burn a core that the process waited for may need: there may be more processes than
// cores. So every wait polls, gives the processor away when there was nothing, sleeps a little
// after a while, and ends.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstdint>
#include <thread>

namespace reshard::backends::mpi {

class Patience {
 public:
  explicit Patience(std::int64_t limit_s) : limit_(limit_s) {}

  // A poll found something.
  void progressed() { polls_ = 0; }
  // A poll found nothing. False once nothing has been found for the time limit.
  bool idle() {
    if (polls_ == 0) since_ = Clock::now();
    if (++polls_ % kPollsPerLook != 0) {
      sched_yield();
      return true;
    }
    Clock::duration waited = Clock::now() - since_;
    if (waited > kYieldFor) std::this_thread::sleep_for(kSleep);
    return waited < limit_;
  }
  std::int64_t limit_s() const { return limit_.count(); }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::int64_t kPollsPerLook = 16;
  static constexpr std::chrono::milliseconds kYieldFor{5};
  static constexpr std::chrono::microseconds kSleep{50};

  std::chrono::seconds limit_;
  std::int64_t polls_ = 0;
  Clock::time_point since_;
};

}  // namespace reshard::backends::mpi
