// SPDX-License-Identifier: BSD-3-Clause
#include "backends/host/rank_memory.h"

#include <fmt/core.h>

#include "core/base/errors.h"

namespace reshard::backends::host {
namespace {

void expect_size(const char* what, std::int64_t expected, std::size_t found) {
  if (expected != static_cast<std::int64_t>(found))
    throw InputError(fmt::format("{} shard: expected {} bytes, found {}", what, expected, found));
}

}  // namespace

RankMemory::RankMemory(const RankSchedule& schedule, std::span<const CallerShards> shards)
    : schedule_(schedule), at_(schedule.buffers.size(), nullptr) {
  for (std::size_t t = 0; t < shards.size(); ++t) {
    TensorId tensor{static_cast<std::int32_t>(t)};
    expect_size("source", schedule.buffer(source_of(tensor)).bytes(), shards[t].source.size());
    expect_size("destination", schedule.buffer(destination_of(tensor)).bytes(),
                shards[t].destination.size());
    // No step writes a source.
    at_[to_index(source_of(tensor))] = const_cast<std::byte*>(shards[t].source.data());
    at_[to_index(destination_of(tensor))] = shards[t].destination.data();
  }
  for (std::size_t b = 0; b < at_.size() && shards.empty(); ++b)
    if (const LocalBuffer& buffer = schedule.buffers[b]; !buffer.temporary && buffer.exists)
      at_[b] = own(buffer.bytes()).data();
}

void RankMemory::lay_out(const TemporaryLayout& layout, std::byte* arena) {
  if (arena == nullptr) arena = own(layout.total_bytes).data();
  for (std::size_t b = 0; b < layout.offset.size(); ++b)
    if (layout.offset[b] >= 0) at_[b] = arena + layout.offset[b];
}

Block& RankMemory::own(std::int64_t bytes) {
  return *own_.emplace_back(std::make_unique<Block>(bytes));
}

}  // namespace reshard::backends::host
