// SPDX-License-Identifier: BSD-3-Clause
// Rings in memory shared by several processes: one per ordered pair, each with a few slots that the
// sender packs into and the receiver unpacks from.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace reshard::backends::host {

class Rings {
 public:
  Rings() = default;
  // For `places` processes, seen from `place`. All slots together take up to `budget_bytes`, unless
  // even the smallest slots need more.
  Rings(int place, int places, std::int64_t budget_bytes);

  static constexpr std::int64_t kPage = 4096;
  // The memory that all rings need.
  std::int64_t bytes() const;
  // Sets the memory: `bytes()` bytes, starting at a page.
  void lie_at(std::byte* memory);
  // Called by one of the processes, before any other uses the rings.
  void begin();

  int place() const { return place_; }
  // The capacity of a slot.
  std::int64_t slot_bytes() const { return slot_bytes_; }

  // Describes a full slot: the message's tag, the number of bytes, and the run, where runs are
  // counted.
  struct Label {
    std::int64_t tag, bytes, run = 0;
    friend bool operator==(const Label&, const Label&) = default;
  };

  // The next free slot towards `place`, or null; filled() passes it to the receiver.
  std::byte* free_slot(int place);
  void filled(int place, const Label& label);
  // The oldest full slot from `place`, or null; drained() returns it to the sender.
  const std::byte* full_slot(int place, Label& label);
  void drained(int place);

 private:
  // Four slots of 256 KiB: packed data is unpacked while still in the caches, and a ring does not
  // fill up so soon that processes sharing a core switch all the time. Slots of 1 MiB took a
  // seventh longer (4 ranks on 2 cores, 4096 x 4096 f32); 128 KiB and eight slots were no better.
  static constexpr std::int64_t kSlots = 4;
  // Each counter has its own cache line, as only one side writes it; the sender writes the labels.
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
