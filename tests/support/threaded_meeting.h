// SPDX-License-Identifier: BSD-3-Clause
// A meeting of threads over real connections on the loopback.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "backends/nccl/star.h"

namespace reshard::backends::nccl {

// Every rank calls the body on a thread of its own; bodies must not throw.
inline void run_meeting(std::int32_t size, const std::function<void(Meeting&)>& body) {
  constexpr std::chrono::milliseconds kLimit{20'000};
  Listener listener("127.0.0.1", 0);
  int port = listener.port();
  std::vector<std::thread> threads;
  for (std::int32_t r = 1; r < size; ++r)
    threads.emplace_back([&, r] {
      std::string trouble;
      body(*Star::join(connect_once("127.0.0.1", port, Clock::now() + kLimit, trouble), r, size,
                       {kLimit, kLimit}, trouble));
    });
  body(*Star::host(std::move(listener), size, kLimit));
  for (std::thread& thread : threads) thread.join();
}

}  // namespace reshard::backends::nccl
