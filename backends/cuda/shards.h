// SPDX-License-Identifier: BSD-3-Clause
// Every rank's buffers in one device's memory.
//
// Source shards that hold the same elements of the same addend share one allocation. A rank's
// temporaries lie in one, each where an earlier one has been read for the last time. Until memory
// is taken, addresses are made up, with the alignment of real ones: tables built on them are as
// large as the real ones will be, so that a plan that does not fit is refused before anything is
// taken.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/device/owners.h"
#include "core/plan/plan.h"
#include "core/schedule/temporaries.h"

namespace reshard::backends::cuda {

class Shards {
 public:
  explicit Shards(const Plan& plan);

  // What allocate takes, rounded as the device does.
  std::int64_t needed_bytes() const;
  void allocate(Device& device);
  void abandon();

  // Where the slot's buffer begins; null where it has no bytes.
  std::byte* data(BufferId buffer, Slot slot) const;
  std::int64_t bytes(BufferId buffer, Slot slot) const {
    return plan_.buffer(buffer).elements(slot) * element_bytes_;
  }
  // Slots of the source mesh whose shard is the first of its replicas, ascending.
  const std::vector<Slot>& sources() const { return sources_; }
  // Slots of the destination mesh, ascending.
  const std::vector<Slot>& destinations() const { return destinations_; }
  // By slot.
  const std::vector<TemporaryLayout>& temporaries() const { return temporaries_; }

 private:
  const Plan& plan_;
  std::int64_t element_bytes_;
  // holder_: by slot, who holds its source shard; -1 outside the source mesh.
  std::vector<Slot> sources_, destinations_, holder_;
  std::vector<TemporaryLayout> temporaries_;
  bool allocated_ = false;
  struct Allocation {
    std::int64_t bytes = 0;
    DeviceMemory memory;
  };
  enum Role { kSource, kDestination, kTemporary, kRoles };
  std::array<std::vector<Allocation>, kRoles> allocations_;  // by slot
};

}  // namespace reshard::backends::cuda
