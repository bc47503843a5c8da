// SPDX-License-Identifier: BSD-3-Clause
// Where one rank's buffers are in this process: shards in our own or in the caller's memory, and
// temporaries in one arena, where the bytes of a temporary are reused once it ends.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "backends/host/message.h"
#include "core/bytes/block.h"
#include "core/plan/executor.h"
#include "core/schedule/host_operations.h"
#include "core/schedule/temporaries.h"

namespace reshard::backends::host {

class RankMemory : public HostOperations<RankMemory> {
 public:
  // `shards` by tensor; if empty, the shards are allocated here. They and the schedule must outlive
  // this object. Throws InputError if a shard's size is not the plan's, or if there is not enough
  // memory.
  RankMemory(const RankSchedule& schedule, std::span<const CallerShards> shards);
  // Places the temporaries that have an offset in the layout. `arena` null: it is allocated here.
  void lay_out(const TemporaryLayout& layout, std::byte* arena = nullptr);

  const RankSchedule& schedule() const { return schedule_; }
  // Null where the rank has no such buffer.
  std::byte* of(BufferId buffer) const { return at_[to_index(buffer)]; }
  LocatedBuffer operator()(BufferId buffer) const { return {of(buffer), schedule_.buffer(buffer)}; }
  std::span<std::byte> bytes(BufferId buffer) const {
    return {of(buffer), to_index(schedule_.buffer(buffer).bytes())};
  }

 private:
  friend class HostOperations<RankMemory>;
  const std::byte* read(const Place& from) const { return of(from.buffer); }
  std::byte* write(const Place& to) { return of(to.buffer); }
  const Shape& shape(const Place& place, const DimVector&) const {
    return schedule_.buffer(place.buffer).shape;
  }
  DType dtype(BufferId buffer) const { return schedule_.buffer(buffer).dtype; }
  Block& own(std::int64_t bytes);

  const RankSchedule& schedule_;
  std::vector<std::byte*> at_;
  std::vector<std::unique_ptr<Block>> own_;
};

}  // namespace reshard::backends::host
