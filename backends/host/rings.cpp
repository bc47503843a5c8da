// SPDX-License-Identifier: BSD-3-Clause
#include "backends/host/rings.h"

#include <algorithm>
#include <memory>

namespace reshard::backends::host {
namespace {

constexpr std::int64_t kLargestSlot = std::int64_t{256} << 10, kSmallestSlot = 16 << 10;
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace

Rings::Rings(int place, int places, std::int64_t budget_bytes) : place_(place), places_(places) {
  std::int64_t share = budget_bytes / count() / kSlots / kPage * kPage;
  slot_bytes_ = std::clamp(share, kSmallestSlot, kLargestSlot);
}

std::int64_t Rings::bytes() const {
  return count() * (kSlots * slot_bytes_ + static_cast<std::int64_t>(sizeof(Counters)));
}

void Rings::lie_at(std::byte* memory) {
  slots_ = memory;
  counters_ = reinterpret_cast<Counters*>(slots_ + count() * kSlots * slot_bytes_);
}

void Rings::begin() { std::uninitialized_value_construct_n(counters_, count()); }

std::byte* Rings::slot(std::int64_t ring, std::uint64_t index) const {
  return slots_ + (ring * kSlots + static_cast<std::int64_t>(index % kSlots)) * slot_bytes_;
}

std::byte* Rings::free_slot(int place) {
  std::int64_t towards = ring(place_, place);
  Counters& at = counters_[towards];
  std::uint64_t next = at.filled.load(std::memory_order_relaxed);
  return next - at.drained.load(std::memory_order_acquire) == kSlots ? nullptr
                                                                     : slot(towards, next);
}

void Rings::filled(int place, const Label& label) {
  Counters& at = counters_[ring(place_, place)];
  std::uint64_t next = at.filled.load(std::memory_order_relaxed);
  at.labels[next % kSlots] = label;
  at.filled.store(next + 1, std::memory_order_release);
}

const std::byte* Rings::full_slot(int place, Label& label) {
  std::int64_t from = ring(place, place_);
  Counters& at = counters_[from];
  std::uint64_t next = at.drained.load(std::memory_order_relaxed);
  if (at.filled.load(std::memory_order_acquire) == next) return nullptr;
  label = at.labels[next % kSlots];
  return slot(from, next);
}

void Rings::drained(int place) {
  std::atomic<std::uint64_t>& count = counters_[ring(place, place_)].drained;
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

}  // namespace reshard::backends::host
