// SPDX-License-Identifier: BSD-3-Clause
// Every rank's buffers in one device's memory.
//
// Source shards that hold the same elements of the same addend share one allocation. A rank's
// temporaries share one allocation too, and a temporary reuses the bytes of earlier ones that have
// been read for the last time. Before allocation, addresses are placeholders with the alignment of
// real ones: tables built on them have the same size as the final ones, so a plan that does not fit
// is refused before anything is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/device/operation_tables.h"
#include "backends/device/owners.h"
#include "core/plan/plan.h"
#include "core/schedule/temporaries.h"

namespace reshard::backends::cuda {

class Shards : public DeviceBuffers {
 public:
  explicit Shards(const Plan& plan);

  // The bytes that allocate takes, rounded as the device rounds them.
  std::int64_t needed_bytes() const;
  void allocate(Device& device);
  void abandon();

  // Where the slot's buffer starts; null if it has no bytes.
  std::byte* data(BufferId buffer, Slot slot) const override;
  Shape shape(BufferId buffer, Slot slot) const override {
    return plan_.buffer(buffer).shape(slot);
  }
  DType dtype(BufferId buffer) const override { return plan_.dtype(buffer); }
  // Slots that have their own shard, ascending; of the source replicas of a shard, only the first.
  const std::vector<Slot>& holders(BufferId shard) const { return holders_[to_index(shard)]; }
  // By slot.
  const std::vector<TemporaryLayout>& temporaries() const { return temporaries_; }

 private:
  void share_source(TensorId tensor);

  const Plan& plan_;
  std::vector<std::vector<Slot>> holders_;  // by source and destination buffer
  std::vector<std::vector<Slot>> holder_;   // by tensor and slot: who has its source shard
  std::vector<TemporaryLayout> temporaries_;
  bool allocated_ = false;
  struct Allocation {
    std::int64_t bytes = 0;
    DeviceMemory memory;
  };
  // By source and destination buffer, then all temporaries; by slot.
  std::vector<std::vector<Allocation>> allocations_;
};

}  // namespace reshard::backends::cuda
