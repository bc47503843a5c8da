// SPDX-License-Identifier: BSD-3-Clause
// What wakes a process that sleeps until another one has written to memory that they share: a word
// each, in that memory. Where processes are more than cores, one that polls keeps the core from the
// one it waits for.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace reshard::backends::host {

class Doorbells {
 public:
  Doorbells() = default;
  // Of `places` processes, as `place` sees them, from a cache line's first byte on.
  Doorbells(int place, int places, std::byte* memory);
  static std::int64_t bytes(int places);
  // By one of the processes, before any other uses them.
  void begin();

  // After what `place` shall find was written.
  void ring(int place);
  // Before the last look at whether there is something to do: what is written from then on ends the
  // sleep.
  void listen();
  // False where nobody rang in that time, or a signal came.
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
