// SPDX-License-Identifier: BSD-3-Clause
#include "backends/mpi/memory.h"

#include <fmt/format.h>

#include "core/base/errors.h"

namespace reshard::backends::mpi {
namespace {

void expect_size(const char* what, std::size_t expected, std::size_t found) {
  if (expected != found)
    throw InputError(fmt::format("{} shard: expected {} bytes, found {}", what, expected, found));
}

}  // namespace

LocalMemory::LocalMemory(const Plan& plan, Slot slot, const TemporaryLayout& layout,
                         const CallerShards* shards)
    : at_(plan.buffers.size(), nullptr) {
  auto bytes = [&](BufferId buffer) {
    return plan.buffer(buffer).elements(slot) * size_bytes(plan.request().dtype());
  };
  source_bytes_ = static_cast<std::size_t>(bytes(kSourceBuffer));
  destination_bytes_ = static_cast<std::size_t>(bytes(kDestinationBuffer));
  if (shards != nullptr) {
    expect_size("source", source_bytes_, shards->source.size());
    expect_size("destination", destination_bytes_, shards->destination.size());
    // No step writes a source.
    at_[0] = const_cast<std::byte*>(shards->source.data());
    at_[1] = shards->destination.data();
  } else {
    if (plan.buffer(kSourceBuffer).exists(slot))
      own_source_ = std::make_unique<Block>(bytes(kSourceBuffer));
    if (plan.buffer(kDestinationBuffer).exists(slot))
      own_destination_ = std::make_unique<Block>(bytes(kDestinationBuffer));
    at_[0] = own_source_ ? own_source_->data() : nullptr;
    at_[1] = own_destination_ ? own_destination_->data() : nullptr;
  }
  if (layout.total_bytes > 0) arena_ = std::make_unique<Block>(layout.total_bytes);
  for (std::size_t b = 2; b < at_.size(); ++b)
    if (layout.offset[b] >= 0 && arena_) at_[b] = arena_->data() + layout.offset[b];
}

}  // namespace reshard::backends::mpi
