// SPDX-License-Identifier: BSD-3-Clause
// The pace of a polling wait: close attention at first, because most waits are short and timed;
// then sleep.
#pragma once

#include <chrono>
#include <thread>

namespace reshard::backends::nccl {

class Waiting {
 public:
  explicit Waiting(std::chrono::milliseconds limit)
      : start_(std::chrono::steady_clock::now()),
        deadline_(start_ + limit),
        next_look_(start_ + kLook) {}

  // Whether it is time to look around for what may have gone wrong.
  bool time_to_look() {
    now_ = std::chrono::steady_clock::now();
    if (now_ < next_look_) return false;
    next_look_ = now_ + kLook;
    return true;
  }
  bool too_long() const { return now_ > deadline_; }
  void pause() const {
    if (now_ - start_ < kSpin)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kSleep);
  }

 private:
  static constexpr std::chrono::microseconds kSpin{2000}, kSleep{50}, kLook{1000};
  std::chrono::steady_clock::time_point start_, deadline_, next_look_, now_ = start_;
};

}  // namespace reshard::backends::nccl
