// SPDX-License-Identifier: BSD-3-Clause
// One rank's buffers on its GPU: source and destination, our own or lent, temporaries in one
// allocation, and staging for what is not contiguous or awaits folding.
//
// A rank's work runs in listed order on one stream, so temporaries and staging are used again
// without further care. Until memory is taken addresses are made up, aligned as real ones: what is
// built on them has its true size, and a plan that does not fit is refused before anything is
// taken.
#pragma once

#include <array>
#include <cstdint>

#include "backends/device/owners.h"
#include "backends/nccl/caller.h"
#include "core/plan/plan.h"
#include "core/schedule/temporaries.h"

namespace reshard::backends::nccl {

class RankMemory {
 public:
  // `shards` null: source and destination are taken as the rest is; else they are the caller's.
  RankMemory(const Plan& plan, const Lives& lives, Slot slot, const CallerShards* shards);

  // The most that any step stages; before allocate.
  void need_staging(std::int64_t bytes);
  std::int64_t needed_bytes() const;
  void allocate(Device& device);
  void abandon();

  Slot slot() const { return slot_; }
  std::byte* at(BufferId buffer) const;
  std::byte* staging() const { return base(kStaging); }
  // Where a member of a group, whose slot it is, has as many bytes: buffers of a group have one
  // shape.
  std::int64_t bytes(BufferId buffer) const {
    return plan_.buffer(buffer).elements(slot_) * element_bytes_;
  }
  std::int64_t element_bytes() const { return element_bytes_; }
  const Plan& plan() const { return plan_; }

 private:
  enum Region { kSource, kDestination, kTemporaries, kStaging, kRegions };
  std::byte* base(Region region) const;

  const Plan& plan_;
  Slot slot_;
  std::int64_t element_bytes_;
  TemporaryLayout temporaries_;
  std::array<std::int64_t, kRegions> needed_{};
  std::array<DeviceMemory, kRegions> memory_;
  std::array<std::byte*, kRegions> lent_{};
  std::size_t lent_regions_ = 0;  // the first ones
  bool allocated_ = false;
};

}  // namespace reshard::backends::nccl
