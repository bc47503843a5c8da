// SPDX-License-Identifier: BSD-3-Clause
// Waiting for other processes and for devices by polling, with a time limit. A blocking call would
// wait for ever for a process that has died or a device that hangs, and busy waiting burns a core
// that the awaited process may need, as there may be more processes than cores. So every wait
// polls, yields the processor after an unsuccessful poll, sleeps between polls after a while, and
// ends.
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
  // A poll found nothing. Returns false once that has been so for the whole time limit.
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
  // After idle(): whether it is time to check whether something went wrong elsewhere.
  bool time_to_look() {
    if (now_ < next_look_) return false;
    next_look_ = now_ + kLook;
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::int64_t kPollsPerLook = 16;  // reading the clock costs as much as a poll
  static constexpr std::chrono::milliseconds kYieldFor{5}, kLook{1};
  static constexpr std::chrono::microseconds kSleep{50};

  std::chrono::milliseconds limit_;
  std::int64_t polls_ = 0;
  Clock::time_point since_, now_, next_look_;
};

}  // namespace reshard::backends::launch
