// SPDX-License-Identifier: BSD-3-Clause
// Rings in memory that processes share: one per ordered pair, each a few slots that the sender
// packs into and the receiver unpacks from.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace reshard::backends::host {

class Rings {
 public:
  Rings() = default;
  // Of `places` processes, as `place` sees them. Slots take up to `budget_bytes` together, or as
  // many of the smallest as there are.
  Rings(int place, int places, std::int64_t budget_bytes);

  static constexpr std::int64_t kPage = 4096;
  // What all of them take.
  std::int64_t bytes() const;
  // Where they lie: `bytes()` from a page's first byte on.
  void lie_at(std::byte* memory);
  // By one of the processes, before any other uses them.
  void begin();

  int place() const { return place_; }
  // What a slot holds at most.
  std::int64_t slot_bytes() const { return slot_bytes_; }

  // What a full slot holds: of which message, how much, and of which run where that is counted.
  struct Label {
    std::int64_t tag, bytes, run = 0;
    friend bool operator==(const Label&, const Label&) = default;
  };

  // The next free slot towards `place`, or null; filled() hands it over.
  std::byte* free_slot(int place);
  void filled(int place, const Label& label);
  // The oldest full slot from `place`, or null; drained() gives it back.
  const std::byte* full_slot(int place, Label& label);
  void drained(int place);

 private:
  // Four slots of 256 KiB: what was packed is unpacked while it is in the caches, and a ring is not
  // full so soon that processes that share a core take turns all the time. Slots of a MiB took a
  // seventh longer (4 ranks on 2 cores, 4096 x 4096 f32); 128 KiB and eight slots were no better.
  static constexpr std::int64_t kSlots = 4;
  // Counters on cache lines of their own: each is written by one side only, labels by the sender.
  struct Counters {
    alignas(64) std::atomic<std::uint64_t> filled;
    alignas(64) std::atomic<std::uint64_t> drained;
    alignas(64) Label labels[kSlots];
  };
  std::int64_t count() const { return std::int64_t{places_} * places_; }
  std::int64_t ring(int from, int to) const { return std::int64_t{from} * places_ + to; }
  std::byte* slot(std::int64_t ring, std::uint64_t index) const;

  std::byte* slots_ = nullptr;
  Counters* counters_ = nullptr;
  std::int64_t slot_bytes_ = 0;
  int place_ = 0, places_ = 1;
};

}  // namespace reshard::backends::host
