// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/shards.h"

#include <algorithm>

#include "core/base/integers.h"
#include "core/layout/replicas.h"
#include "core/schedule/accounting.h"

namespace reshard::backends::cuda {
namespace {

constexpr std::int64_t kAlignment = 256;
// The CUDA runtime takes large allocations in pieces of 2 MiB, and small ones out of such pieces.
constexpr std::int64_t kPieceBytes = std::int64_t{2} << 20;

std::int64_t taken_bytes(std::int64_t bytes) {
  std::int64_t granularity = bytes < kPieceBytes / 2 ? kAlignment : kPieceBytes;
  return ceil_div(bytes, granularity) * granularity;
}

std::vector<Slot> slots_of_mesh(const Plan& plan, const Mesh& mesh) {
  std::vector<Slot> out;
  for (std::int32_t position = 0; position < mesh.size(); ++position)
    out.push_back(plan.slot_of(mesh.rank_at(position)));
  return out;
}

}  // namespace

Shards::Shards(const Plan& plan)
    : plan_(plan),
      element_bytes_(size_bytes(plan.request().dtype())),
      holder_(plan.slot_count(), -1) {
  for (std::vector<Allocation>& all : allocations_) all.resize(plan.slot_count());
  std::vector<Slot> slots = slots_of_mesh(plan, plan.request().source().mesh());
  std::vector<std::int32_t> replicas = first_replicas(plan.request());
  // By name of a set of replicas: its lowest slot.
  std::vector<Slot> first(replicas.size(), -1);
  for (std::size_t p = 0; p < slots.size(); ++p) {
    Slot& least = first[static_cast<std::size_t>(replicas[p])];
    if (least < 0 || slots[p] < least) least = slots[p];
  }
  for (std::size_t p = 0; p < slots.size(); ++p) {
    Slot holder = first[static_cast<std::size_t>(replicas[p])];
    holder_[static_cast<std::size_t>(slots[p])] = holder;
    if (holder == slots[p]) sources_.push_back(holder);
  }
  std::sort(sources_.begin(), sources_.end());
  destinations_ = slots_of_mesh(plan, plan.request().destination().mesh());
  std::sort(destinations_.begin(), destinations_.end());

  for (Slot slot : sources_)
    allocations_[kSource][static_cast<std::size_t>(slot)].bytes = bytes(kSourceBuffer, slot);
  for (Slot slot : destinations_)
    allocations_[kDestination][static_cast<std::size_t>(slot)].bytes =
        bytes(kDestinationBuffer, slot);
  Lives lives = lives_of(plan);
  for (std::size_t s = 0; s < plan.slot_count(); ++s) {
    temporaries_.push_back(lay_out_temporaries(plan, lives, static_cast<Slot>(s), kAlignment));
    allocations_[kTemporary][s].bytes = temporaries_.back().total_bytes;
  }
}

std::int64_t Shards::needed_bytes() const {
  std::int64_t sum = 0;
  for (const std::vector<Allocation>& all : allocations_)
    for (const Allocation& allocation : all) sum += taken_bytes(allocation.bytes);
  return sum;
}

void Shards::allocate(Device& device) {
  for (std::vector<Allocation>& all : allocations_)
    for (Allocation& allocation : all) allocation.memory = DeviceMemory(device, allocation.bytes);
  allocated_ = true;
}

void Shards::abandon() {
  for (std::vector<Allocation>& all : allocations_)
    for (Allocation& allocation : all) allocation.memory.abandon();
}

std::byte* Shards::data(BufferId buffer, Slot slot) const {
  const Allocation* allocation = nullptr;
  std::int64_t offset = 0;
  if (buffer == kSourceBuffer) {
    allocation =
        &allocations_[kSource][static_cast<std::size_t>(holder_[static_cast<std::size_t>(slot)])];
  } else if (buffer == kDestinationBuffer) {
    allocation = &allocations_[kDestination][static_cast<std::size_t>(slot)];
  } else {
    allocation = &allocations_[kTemporary][static_cast<std::size_t>(slot)];
    offset = temporaries_[static_cast<std::size_t>(slot)].offset[to_index(buffer)];
  }
  if (allocation->bytes == 0) return nullptr;
  std::byte* begin =
      allocated_ ? allocation->memory.data() : reinterpret_cast<std::byte*>(kAlignment);
  return begin + offset;
}

}  // namespace reshard::backends::cuda
