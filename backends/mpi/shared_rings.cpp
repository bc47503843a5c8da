// SPDX-License-Identifier: BSD-3-Clause
#include "backends/mpi/shared_rings.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "backends/mpi/calls.h"

namespace reshard::backends::mpi {
namespace {

constexpr std::int64_t kPage = 4096, kLargestSlot = std::int64_t{256} << 10,
                       kSmallestSlot = 16 << 10;
// All slots that one process sends through, together.
constexpr std::int64_t kBudget = std::int64_t{32} << 20;
// Four slots of 256 KiB: what was packed is unpacked while it is in the caches, and a ring is not
// full so soon that processes that share a core take turns all the time. Slots of a MiB took a
// seventh longer (4 ranks on 2 cores, 4096 x 4096 f32); 128 KiB and eight slots were no better.
constexpr std::int64_t kSlots = 4;
constexpr std::uint64_t kMark =
    0x7265736861726421;  // at the beginning of the memory: what was opened is what was made

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace

struct SharedRings::Shape {
  explicit Shape(int places_in) : places(places_in) {
    std::int64_t share = kBudget / std::max(places - 1, 1) / kSlots;
    slot_bytes = std::clamp(share / kPage * kPage, kSmallestSlot, kLargestSlot);
    std::int64_t rings = std::int64_t{places} * places;
    header_bytes =
        (kPage + rings * static_cast<std::int64_t>(sizeof(Counters)) + kPage - 1) / kPage * kPage;
    bytes = header_bytes + rings * kSlots * slot_bytes;
  }
  int places;
  std::int64_t slot_bytes = 0, header_bytes = 0, bytes = 0;
};

namespace {

// What the first process tells the others.
struct Invitation {
  std::int64_t pid = -1;
  std::int64_t descriptor = -1;
};

// Untouched pages cost nothing: rings between processes that never talk take no memory.
int make_file(std::int64_t bytes) {
  int file = memfd_create("reshard", MFD_CLOEXEC);
  if (file >= 0 && ftruncate(file, bytes) != 0) {
    close(file);
    file = -1;
  }
  return file;
}

std::byte* map_file(int file, std::int64_t bytes) {
  if (file < 0) return nullptr;
  void* memory = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_NORESERVE, file, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

}  // namespace

std::unique_ptr<SharedRings> SharedRings::make(MPI_Comm node) {
  int place = 0, places = 1;
  RESHARD_MPI_CALL(-1, MPI_Comm_rank(node, &place));
  RESHARD_MPI_CALL(-1, MPI_Comm_size(node, &places));
  if (places == 1) return nullptr;
  Shape shape(places);
  Invitation invitation;
  int file = -1;
  std::byte* memory = nullptr;
  if (place == 0) {
    file = make_file(shape.bytes);
    memory = map_file(file, shape.bytes);
    if (memory != nullptr)
      *reinterpret_cast<std::uint64_t*>(memory) = kMark ^ static_cast<std::uint64_t>(getpid());
    invitation = {getpid(), file};
  }
  RESHARD_MPI_CALL(-1, MPI_Bcast(&invitation, sizeof invitation, MPI_BYTE, 0, node));
  if (place != 0 && invitation.descriptor >= 0) {
    std::string path =
        "/proc/" + std::to_string(invitation.pid) + "/fd/" + std::to_string(invitation.descriptor);
    file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    // Another process namespace may have another process of that number.
    if (file >= 0 && lseek(file, 0, SEEK_END) == shape.bytes) memory = map_file(file, shape.bytes);
    if (memory != nullptr && *reinterpret_cast<const std::uint64_t*>(memory) !=
                                 (kMark ^ static_cast<std::uint64_t>(invitation.pid))) {
      munmap(memory, static_cast<std::size_t>(shape.bytes));
      memory = nullptr;
    }
  }
  int mine = memory != nullptr ? 1 : 0, all = 0;
  // The file is open until everyone has answered.
  RESHARD_MPI_CALL(-1, MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, node));
  if (file >= 0) close(file);
  if (all == 1) return std::unique_ptr<SharedRings>(new SharedRings(memory, shape, place));
  if (memory != nullptr) munmap(memory, static_cast<std::size_t>(shape.bytes));
  return nullptr;
}

SharedRings::SharedRings(std::byte* memory, const Shape& shape, int place)
    : memory_(memory),
      bytes_(shape.bytes),
      slot_bytes_(shape.slot_bytes),
      slots_(kSlots),
      header_bytes_(shape.header_bytes),
      places_(shape.places),
      place_(place) {}

SharedRings::~SharedRings() { munmap(memory_, static_cast<std::size_t>(bytes_)); }

// A new file is all zero, and so are its counters.
SharedRings::Counters& SharedRings::counters(std::int64_t ring) const {
  return *reinterpret_cast<Counters*>(memory_ + kPage +
                                      ring * static_cast<std::int64_t>(sizeof(Counters)));
}

std::byte* SharedRings::slot(std::int64_t ring, std::uint64_t index) const {
  return memory_ + header_bytes_ +
         (ring * slots_ + static_cast<std::int64_t>(index % static_cast<std::uint64_t>(slots_))) *
             slot_bytes_;
}

std::byte* SharedRings::free_slot(int place) {
  std::int64_t towards = ring(place_, place);
  Counters& at = counters(towards);
  std::uint64_t next = at.filled.load(std::memory_order_relaxed);
  return next - at.drained.load(std::memory_order_acquire) == static_cast<std::uint64_t>(slots_)
             ? nullptr
             : slot(towards, next);
}

void SharedRings::filled(int place) {
  std::atomic<std::uint64_t>& count = counters(ring(place_, place)).filled;
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

const std::byte* SharedRings::full_slot(int place) {
  std::int64_t from = ring(place, place_);
  Counters& at = counters(from);
  std::uint64_t next = at.drained.load(std::memory_order_relaxed);
  return at.filled.load(std::memory_order_acquire) == next ? nullptr : slot(from, next);
}

void SharedRings::drained(int place) {
  std::atomic<std::uint64_t>& count = counters(ring(place, place_)).drained;
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

}  // namespace reshard::backends::mpi
