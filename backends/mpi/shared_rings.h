// SPDX-License-Identifier: BSD-3-Clause
// Rings of shared memory between the processes of one node: one per ordered pair, each a few slots
// that the sender packs into and the receiver unpacks from.
//
// The memory is a window of MPI's, which is all that MPI does here. Measured at 2, 4 and 8 ranks on
// two cores, Open MPI and MPICH: messages up to 256 KiB through MPI's own transport take 1.5 to 3
// times as long, packed ones of some MiB as long; only long contiguous ones, which it copies once,
// take less.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace reshard::backends::mpi {

class SharedRings {
 public:
  // Collective over the node's communicator, as is destruction; null, on all of them, where there
  // is a single process or memory cannot be shared.
  static std::unique_ptr<SharedRings> make(MPI_Comm node);
  SharedRings(const SharedRings&) = delete;
  SharedRings& operator=(const SharedRings&) = delete;
  ~SharedRings();

  // Gives the memory up without freeing it: the others may never come to do so, too.
  void leak() { window_ = MPI_WIN_NULL; }

  // What a slot holds at most.
  std::int64_t slot_bytes() const { return slot_bytes_; }

  // What a full slot holds: of which message, and how much.
  struct Label {
    std::int64_t tag, bytes;
    friend bool operator==(const Label&, const Label&) = default;
  };

  // Places are those of the node's communicator. The next free slot towards `place`, or null;
  // filled() hands it over.
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
  SharedRings() = default;
  bool allocate(MPI_Comm node, std::int64_t rings);
  std::int64_t ring(int from, int to) const { return std::int64_t{from} * places_ + to; }
  std::byte* slot(std::int64_t ring, std::uint64_t index) const;

  MPI_Win window_ = MPI_WIN_NULL;
  std::byte* slots_ = nullptr;
  Counters* counters_ = nullptr;
  std::int64_t slot_bytes_ = 0;
  int place_ = 0, places_ = 1;
};

}  // namespace reshard::backends::mpi
