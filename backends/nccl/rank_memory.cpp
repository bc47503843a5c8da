// SPDX-License-Identifier: BSD-3-Clause
#include "backends/nccl/rank_memory.h"

#include <algorithm>

#include "core/base/integers.h"

namespace reshard::backends::nccl {
namespace {

constexpr std::int64_t kAlignment = 256;
// Far from anything real, and from each other.
constexpr std::uintptr_t kMadeUp = std::uintptr_t{1} << 60;

}  // namespace

RankMemory::RankMemory(const Plan& plan, const Lives& lives, Slot slot, const CallerShards* shards)
    : plan_(plan), slot_(slot), element_bytes_(size_bytes(plan.request().dtype())) {
  temporaries_ = lay_out_temporaries(plan, lives, slot, kAlignment);
  needed_ = {bytes(kSourceBuffer), bytes(kDestinationBuffer), temporaries_.total_bytes, 0};
  if (shards == nullptr) return;
  lent_regions_ = 2;
  // No plan writes to its source.
  lent_ = {const_cast<std::byte*>(shards->source.data()), shards->destination.data(), nullptr,
           nullptr};
}

void RankMemory::need_staging(std::int64_t bytes) {
  needed_[kStaging] = std::max(needed_[kStaging], bytes);
}

std::int64_t RankMemory::needed_bytes() const {
  std::int64_t out = 0;
  for (std::size_t region = lent_regions_; region < kRegions; ++region)
    out += ceil_div(needed_[region], kAlignment) * kAlignment;
  return out;
}

void RankMemory::allocate(Device& device) {
  for (std::size_t region = lent_regions_; region < kRegions; ++region)
    memory_[region] = DeviceMemory(device, needed_[region]);
  allocated_ = true;
}

void RankMemory::abandon() {
  for (DeviceMemory& memory : memory_) memory.abandon();
}

std::byte* RankMemory::base(Region region) const {
  if (region < lent_regions_) return lent_[region];
  if (allocated_) return memory_[region].data();
  return reinterpret_cast<std::byte*>(kMadeUp * (1 + static_cast<std::uintptr_t>(region)));
}

std::byte* RankMemory::at(BufferId buffer) const {
  if (buffer == kSourceBuffer) return base(kSource);
  if (buffer == kDestinationBuffer) return base(kDestination);
  return base(kTemporaries) + temporaries_.offset[to_index(buffer)];
}

}  // namespace reshard::backends::nccl
