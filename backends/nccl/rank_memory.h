// SPDX-License-Identifier: BSD-3-Clause
// One rank's buffers on its GPU: shards, our own or lent, temporaries in one allocation, and
// staging for messages that are not contiguous.
//
// A rank's work runs in listed order on one stream, so temporaries and staging are used again
// without further care. Until memory is taken addresses are made up, aligned as real ones: what is
// built on them has its true size, and a plan that does not fit is refused before anything is
// taken.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backends/device/operation_tables.h"
#include "backends/device/owners.h"
#include "core/plan/executor.h"
#include "core/schedule/temporaries.h"

namespace reshard::backends::nccl {

class RankMemory : public DeviceBuffers {
 public:
  // `shards` by tensor; none: they are taken as the rest is. The schedule must outlive this.
  RankMemory(const RankSchedule& schedule, std::span<const CallerShards> shards);

  // The most that any launch stages; before allocate.
  void need_staging(std::int64_t bytes);
  std::int64_t needed_bytes() const;
  void allocate(Device& device);
  void abandon();

  Slot slot() const { return schedule_.slot; }
  const LocalBuffer& buffer(BufferId id) const { return schedule_.buffer(id); }
  std::byte* at(BufferId buffer) const;
  std::byte* staging() const { return regions_.back().begin; }

  std::byte* data(BufferId buffer, Slot) const override { return at(buffer); }
  Shape shape(BufferId id, Slot) const override { return buffer(id).shape; }
  DType dtype(BufferId id) const override { return buffer(id).dtype; }

 private:
  // Of our own, or lent, which has no bytes to take.
  struct Region {
    std::byte* begin;
    std::int64_t needed_bytes = 0;
    DeviceMemory memory = {};
  };
  Region& temporaries() { return *(regions_.end() - 2); }

  const RankSchedule& schedule_;
  TemporaryLayout layout_;
  std::vector<Region> regions_;  // source and destination of every tensor, temporaries, staging
};

}  // namespace reshard::backends::nccl
