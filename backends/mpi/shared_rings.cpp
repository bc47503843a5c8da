// SPDX-License-Identifier: BSD-3-Clause
#include "backends/mpi/shared_rings.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "backends/mpi/calls.h"
#include "core/base/ids.h"

namespace reshard::backends::mpi {
namespace {

constexpr std::int64_t kPage = 4096, kLargestSlot = std::int64_t{256} << 10,
                       kSmallestSlot = 16 << 10;
// All slots of a node together: a container often has 64 MiB to share, and MPI takes half of them.
constexpr std::int64_t kBudget = std::int64_t{16} << 20;
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// Where Open MPI finds no room for a window, its first process says so and the others wait for
// ever.
bool there_is_room(std::int64_t bytes) {
  std::error_code none;
  std::filesystem::space_info space = std::filesystem::space("/dev/shm", none);
  return none || space.available > static_cast<std::uintmax_t>(bytes);
}

bool all(bool mine, MPI_Comm node) {
  int here = mine ? 1 : 0, everywhere = 0;
  RESHARD_MPI_CALL(-1, MPI_Allreduce(&here, &everywhere, 1, MPI_INT, MPI_MIN, node));
  return everywhere == 1;
}

}  // namespace

std::unique_ptr<SharedRings> SharedRings::make(MPI_Comm node) {
  std::unique_ptr<SharedRings> rings(new SharedRings);
  RESHARD_MPI_CALL(-1, MPI_Comm_rank(node, &rings->place_));
  RESHARD_MPI_CALL(-1, MPI_Comm_size(node, &rings->places_));
  if (rings->places_ == 1) return nullptr;
  std::int64_t count = std::int64_t{rings->places_} * rings->places_,
               share = kBudget / count / kSlots / kPage * kPage;
  rings->slot_bytes_ = std::clamp(share, kSmallestSlot, kLargestSlot);
  std::int64_t slots_bytes = count * kSlots * rings->slot_bytes_;
  if (all(there_is_room(2 * slots_bytes), node) && all(rings->allocate(node, count), node))
    return rings;
  // To free a window takes all of its processes.
  rings->window_ = MPI_WIN_NULL;
  return nullptr;
}

bool SharedRings::allocate(MPI_Comm node, std::int64_t rings) {
  std::int64_t slots_bytes = rings * kSlots * slot_bytes_,
               counters_bytes = rings * static_cast<std::int64_t>(sizeof(Counters));
  void* memory = nullptr;
  // With a page more than is used: implementations align to a few bytes only, and packing into
  // slots that lie across cache lines took a third longer.
  MPI_Aint bytes = place_ == 0 ? slots_bytes + counters_bytes + kPage : 0;
  int unit = 0;
  if (MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, node, &memory, &window_) != MPI_SUCCESS ||
      MPI_Win_shared_query(window_, 0, &bytes, &unit, &memory) != MPI_SUCCESS)
    return false;
  auto room = to_index(bytes);
  memory = std::align(kPage, room - kPage, memory, room);
  slots_ = static_cast<std::byte*>(memory);
  counters_ = reinterpret_cast<Counters*>(slots_ + slots_bytes);
  if (place_ == 0) std::uninitialized_value_construct_n(counters_, rings);
  return true;
}

SharedRings::~SharedRings() {
  if (window_ != MPI_WIN_NULL && mpi_is_up()) MPI_Win_free(&window_);
}

std::byte* SharedRings::slot(std::int64_t ring, std::uint64_t index) const {
  return slots_ + (ring * kSlots + static_cast<std::int64_t>(index % kSlots)) * slot_bytes_;
}

std::byte* SharedRings::free_slot(int place) {
  std::int64_t towards = ring(place_, place);
  Counters& at = counters_[towards];
  std::uint64_t next = at.filled.load(std::memory_order_relaxed);
  return next - at.drained.load(std::memory_order_acquire) == kSlots ? nullptr
                                                                     : slot(towards, next);
}

void SharedRings::filled(int place, const Label& label) {
  Counters& at = counters_[ring(place_, place)];
  std::uint64_t next = at.filled.load(std::memory_order_relaxed);
  at.labels[next % kSlots] = label;
  at.filled.store(next + 1, std::memory_order_release);
}

const std::byte* SharedRings::full_slot(int place, Label& label) {
  std::int64_t from = ring(place, place_);
  Counters& at = counters_[from];
  std::uint64_t next = at.drained.load(std::memory_order_relaxed);
  if (at.filled.load(std::memory_order_acquire) == next) return nullptr;
  label = at.labels[next % kSlots];
  return slot(from, next);
}

void SharedRings::drained(int place) {
  std::atomic<std::uint64_t>& count = counters_[ring(place, place_)].drained;
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

}  // namespace reshard::backends::mpi
