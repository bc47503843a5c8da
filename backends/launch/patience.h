// SPDX-License-Identifier: BSD-3-Clause
// Waiting by polling, with a limit: for other processes and for devices. Calls that block would
// wait for ever for a process that has died or a device that hangs, and they burn a core that what
// is waited for may need: there may be more processes than cores. So every wait polls, gives the
// processor away when there was nothing, sleeps between polls after a while, and ends.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstdint>
#include <thread>

namespace reshard::backends::launch {

class Patience {
 public:
  explicit Patience(std::chrono::milliseconds limit) : limit_(limit) {}

  // A poll found something.
  void progressed() { polls_ = 0; }
  // A poll found nothing. False once nothing has been found for the time limit.
  bool idle() {
    if (polls_ == 0) {
      since_ = now_ = Clock::now();
      next_look_ = since_ + kLook;
    }
    bool sleeps = now_ - since_ > kYieldFor;
    if (sleeps)
      std::this_thread::sleep_for(kSleep);
    else
      sched_yield();
    if (++polls_ % kPollsPerLook == 0 || sleeps) now_ = Clock::now();
    return now_ - since_ < limit_;
  }
  // After idle: whether it is time to look around for what may have gone wrong.
  bool time_to_look() {
    if (now_ < next_look_) return false;
    next_look_ = now_ + kLook;
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::int64_t kPollsPerLook = 16;  // at the clock, which costs as much as a poll
  static constexpr std::chrono::milliseconds kYieldFor{5}, kLook{1};
  static constexpr std::chrono::microseconds kSleep{50};

  std::chrono::milliseconds limit_;
  std::int64_t polls_ = 0;
  Clock::time_point since_, now_, next_look_;
};

}  // namespace reshard::backends::launch
