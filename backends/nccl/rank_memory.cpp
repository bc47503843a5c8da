// SPDX-License-Identifier: BSD-3-Clause
#include "backends/nccl/rank_memory.h"

#include <algorithm>

#include "core/base/integers.h"

namespace reshard::backends::nccl {
namespace {

constexpr std::int64_t kAlignment = 256;
// Far from anything real, and from each other.
constexpr std::uintptr_t kMadeUp = std::uintptr_t{1} << 48;

}  // namespace

RankMemory::RankMemory(const RankSchedule& schedule, std::span<const CallerShards> shards)
    : schedule_(schedule), layout_(lay_out_temporaries(temporary_lives(schedule), kAlignment)) {
  auto add = [&](std::int64_t bytes) {
    regions_.push_back({reinterpret_cast<std::byte*>(kMadeUp * (1 + regions_.size())), bytes});
  };
  // Shards come before temporaries.
  for (std::size_t b = 0; b < schedule.buffers.size() && !schedule.buffers[b].temporary; ++b) {
    add(schedule.buffers[b].bytes());
    if (shards.empty()) continue;
    const CallerShards& lent = shards[b / 2];
    // No plan writes to its source.
    regions_[b].begin =
        b % 2 == 0 ? const_cast<std::byte*>(lent.source.data()) : lent.destination.data();
    regions_[b].needed_bytes = 0;
  }
  add(layout_.total_bytes);
  add(0);
}

void RankMemory::need_staging(std::int64_t bytes) {
  regions_.back().needed_bytes = std::max(regions_.back().needed_bytes, bytes);
}

std::int64_t RankMemory::needed_bytes() const {
  std::int64_t out = 0;
  for (const Region& region : regions_)
    out += ceil_div(region.needed_bytes, kAlignment) * kAlignment;
  return out;
}

void RankMemory::allocate(Device& device) {
  for (Region& region : regions_) {
    if (region.needed_bytes == 0) continue;
    region.memory = DeviceMemory(device, region.needed_bytes);
    region.begin = region.memory.data();
  }
}

void RankMemory::abandon() {
  for (Region& region : regions_) region.memory.abandon();
}

std::byte* RankMemory::at(BufferId buffer) const {
  if (!schedule_.buffer(buffer).temporary) return regions_[to_index(buffer)].begin;
  return (regions_.end() - 2)->begin + layout_.offset[to_index(buffer)];
}

}  // namespace reshard::backends::nccl
