// SPDX-License-Identifier: BSD-3-Clause
// Doorbells: each process sleeps on its own word in shared memory until another process has written
// something for it. With more processes than cores, a process that polls would keep the core from
// the one that it waits for.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace reshard::backends::host {

class Doorbells {
 public:
  Doorbells() = default;
  // For `places` processes, seen from `place`; `memory` starts at a cache line.
  Doorbells(int place, int places, std::byte* memory);
  static std::int64_t bytes(int places);
  // Called by one of the processes, before any other uses the doorbells.
  void begin();

  // Call after writing what `place` is to find.
  void ring(int place);
  // Call before the last check for work: anything written after this call ends the sleep.
  void listen();
  // False if no process rang within `most`, or if a signal arrived.
  bool sleep(std::chrono::milliseconds most);
  void stop_listening();

 private:
  struct Doorbell {
    alignas(64) std::atomic<std::uint32_t> listening;  // 0 or 1
  };
  Doorbell* doorbells_ = nullptr;
  int place_ = 0, places_ = 1;
};

}  // namespace reshard::backends::host
