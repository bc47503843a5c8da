// SPDX-License-Identifier: BSD-3-Clause
#include "sim/store/memory.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "core/base/errors.h"

namespace reshard::sim {

StoreMemory::StoreMemory(const Plan& plan, bool poison)
    : plan_(plan), poison_(poison), blocks_(plan.buffers.size() * plan.slot_count()) {}

std::byte* StoreMemory::allocate(BufferId buffer, Slot slot) {
  RESHARD_CHECK(plan_.buffer(buffer).exists(slot),
                fmt::format("slot {} has no buffer {}", slot, to_index(buffer)));
  std::int64_t bytes = size_bytes(buffer, slot);
  std::shared_ptr<Block>& block = blocks_[at(buffer, slot)];
  block = std::make_shared<Block>(bytes);
  if (poison_) std::memset(block->data(), 0xa5, static_cast<std::size_t>(bytes));
  live_bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, live_bytes_);
  return block->data();
}

std::span<std::byte> StoreMemory::allocate_source(BufferId source, Slot slot) {
  std::byte* data = allocate(source, slot);
  return {data, static_cast<std::size_t>(size_bytes(source, slot))};
}

void StoreMemory::share_source(BufferId source, Slot slot, Slot with) {
  RESHARD_CHECK(size_bytes(source, slot) == size_bytes(source, with),
                fmt::format("slots {} and {} share no shard", slot, with));
  blocks_[at(source, slot)] = blocks_[at(source, with)];
}

const std::byte* StoreMemory::read(BufferId buffer, Slot slot) const {
  const std::shared_ptr<Block>& block = blocks_[at(buffer, slot)];
  RESHARD_CHECK(block != nullptr, fmt::format("buffer {} of slot {} is read but was not written",
                                              to_index(buffer), slot));
  return block->data();
}

std::byte* StoreMemory::write(BufferId buffer, Slot slot) {
  RESHARD_CHECK(plan_.buffer(buffer).role() != BufferRole::Source,
                fmt::format("the source of slot {} is written", slot));
  const std::shared_ptr<Block>& block = blocks_[at(buffer, slot)];
  return block ? block->data() : allocate(buffer, slot);
}

void StoreMemory::release(BufferId buffer, Slot slot) {
  std::shared_ptr<Block>& block = blocks_[at(buffer, slot)];
  if (block && block.use_count() == 1) live_bytes_ -= block->size();
  block.reset();
}

Shape StoreMemory::shape(const Place& place, const DimVector& extents) const {
  auto [slot, buffer, lo] = place;
  RESHARD_CHECK(to_index(buffer) < plan_.buffers.size() &&
                    static_cast<std::size_t>(slot) < plan_.slot_count() &&
                    plan_.buffer(buffer).exists(slot),
                fmt::format("slot {} has no buffer {}", slot, to_index(buffer)));
  Shape whole = plan_.buffer(buffer).shape(slot);
  Box box = box_at(lo, extents);
  RESHARD_CHECK(box.dims() == whole.size() && contains(box_of(whole), box),
                fmt::format("box {} lies outside buffer {} [{}] of slot {}", text(box),
                            to_index(buffer), text(whole), slot));
  return whole;
}

}  // namespace reshard::sim
