// SPDX-License-Identifier: BSD-3-Clause
// Where one rank's buffers lie in this process: source and destination in memory of our own or of
// the caller's, temporaries in one arena that is used again as they end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/bytes/block.h"
#include "core/plan/plan.h"
#include "core/schedule/temporaries.h"

namespace reshard::backends::mpi {

// A rank's shards where the caller has them: dense row-major, of exactly the plan's sizes; empty
// where the rank has none. Not copied.
struct CallerShards {
  std::span<const std::byte> source;
  std::span<std::byte> destination;
};

class LocalMemory {
 public:
  // `shards` null: memory of our own. Throws InputError where the caller's sizes are not the plan's
  // or there is no memory.
  LocalMemory(const Plan& plan, Slot slot, const TemporaryLayout& layout,
              const CallerShards* shards);

  // Null where the rank has no such buffer.
  std::byte* of(BufferId buffer) const { return at_[to_index(buffer)]; }
  std::span<std::byte> source() const { return {of(kSourceBuffer), source_bytes_}; }
  std::span<const std::byte> destination() const {
    return {of(kDestinationBuffer), destination_bytes_};
  }

 private:
  std::vector<std::byte*> at_;
  std::size_t source_bytes_, destination_bytes_;
  std::unique_ptr<Block> own_source_, own_destination_, arena_;
};

}  // namespace reshard::backends::mpi
