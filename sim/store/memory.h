// SPDX-License-Identifier: BSD-3-Clause
// The memory of all ranks, in which operations run: one allocation per (buffer, slot), made when it
// is first written. Every box is checked against its buffer.
//
// Source shards that hold the same elements of the same addend share one allocation. Sharing is
// copy-on-write in the plain sense that a write needs memory of its own: plans never write the
// source, so a write to it is refused instead of copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/bytes/block.h"
#include "core/plan/plan.h"
#include "core/schedule/host_operations.h"

namespace reshard::sim {

class StoreMemory : public HostOperations {
 public:
  // `poison`: new memory is filled with 0xa5, so that a read of what was never written shows in
  // tests. The plan must outlive this.
  explicit StoreMemory(const Plan& plan, bool poison = false);

  // Gives the slot's shard of a source its memory, or shares that of another slot.
  std::span<std::byte> allocate_source(BufferId source, Slot slot);
  void share_source(BufferId source, Slot slot, Slot with);

  // The slot must have the buffer; where elements are read they must have been written.
  const std::byte* read(BufferId buffer, Slot slot) const;
  // Allocates at the first call. Never a source.
  std::byte* write(BufferId buffer, Slot slot);
  void release(BufferId buffer, Slot slot);

  std::int64_t size_bytes(BufferId buffer, Slot slot) const {
    return plan_.buffer_bytes(buffer, slot);
  }
  std::int64_t live_bytes() const { return live_bytes_; }  // allocated now, shared memory once
  std::int64_t peak_bytes() const { return peak_bytes_; }

 private:
  std::size_t at(BufferId buffer, Slot slot) const {
    return to_index(buffer) * plan_.slot_count() + static_cast<std::size_t>(slot);
  }
  std::byte* allocate(BufferId buffer, Slot slot);
  const std::byte* read(const Place& from) const override { return read(from.buffer, from.slot); }
  std::byte* write(const Place& to) override { return write(to.buffer, to.slot); }
  Shape shape(const Place& place, const DimVector& extents) const override;
  DType dtype(BufferId buffer) const override { return plan_.dtype(buffer); }

  const Plan& plan_;
  bool poison_;
  std::int64_t live_bytes_ = 0, peak_bytes_ = 0;
  std::vector<std::shared_ptr<Block>> blocks_;  // [buffer * slots + slot]
};

}  // namespace reshard::sim
