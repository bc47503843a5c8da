// SPDX-License-Identifier: BSD-3-Clause
// Rings of shared memory between the processes of one node: one per ordered pair, each a few slots
// that the sender packs into and the receiver unpacks from.
//
// MPI's own way between two processes of a node copies at least once more than packing and
// unpacking do. A ring takes exactly those two copies. (One copy by the kernel, process_vm_readv,
// was measured at twice the time of the two.) The memory is an anonymous file that the node's first
// process makes and the others open through procfs: no file system needs room for it, and it is
// gone with the last process. Where that is refused there are no rings, and everything goes through
// MPI.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace reshard::backends::mpi {

class SharedRings {
 public:
  // Collective over the node's communicator; null, on all of them, where there is a single process
  // or memory cannot be shared.
  static std::unique_ptr<SharedRings> make(MPI_Comm node);
  SharedRings(const SharedRings&) = delete;
  SharedRings& operator=(const SharedRings&) = delete;
  ~SharedRings();

  // What a slot holds at most.
  std::int64_t slot_bytes() const { return slot_bytes_; }

  // Places are those of the node's communicator. The next free slot towards `place`, or null;
  // filled() hands it over.
  std::byte* free_slot(int place);
  void filled(int place);
  // The oldest full slot from `place`, or null; drained() gives it back.
  const std::byte* full_slot(int place);
  void drained(int place);

 private:
  // Counters on cache lines of their own: each is written by one side only.
  struct Counters {
    alignas(64) std::atomic<std::uint64_t> filled;
    alignas(64) std::atomic<std::uint64_t> drained;
  };
  struct Shape;
  SharedRings(std::byte* memory, const Shape& shape, int place);
  std::int64_t ring(int from, int to) const { return std::int64_t{from} * places_ + to; }
  Counters& counters(std::int64_t ring) const;
  std::byte* slot(std::int64_t ring, std::uint64_t index) const;

  std::byte* memory_;
  std::int64_t bytes_, slot_bytes_, slots_, header_bytes_;
  int places_, place_;
};

}  // namespace reshard::backends::mpi
