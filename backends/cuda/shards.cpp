// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/shards.h"

#include <algorithm>

#include "core/base/integers.h"
#include "core/layout/request.h"

namespace reshard::backends::cuda {
namespace {

constexpr std::int64_t kAlignment = 256;
// The CUDA runtime allocates large blocks in pieces of 2 MiB, and carves small ones out of such
// pieces.
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
    : plan_(plan), holders_(2 * plan.tensors.size()), allocations_(holders_.size() + 1) {
  for (std::vector<Allocation>& all : allocations_) all.resize(plan.slot_count());
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    TensorId tensor{static_cast<std::int32_t>(t)};
    share_source(tensor);
    std::vector<Slot>& destinations = holders_[to_index(destination_of(tensor))];
    destinations = slots_of_mesh(plan, plan.request(tensor).destination().mesh());
    std::sort(destinations.begin(), destinations.end());
  }
  for (std::size_t b = 0; b < holders_.size(); ++b)
    for (Slot slot : holders_[b])
      allocations_[b][to_index(slot)].bytes =
          plan.buffer_bytes(BufferId{static_cast<std::int32_t>(b)}, slot);
  Lives lives = lives_of(plan);
  for (std::size_t s = 0; s < plan.slot_count(); ++s) {
    temporaries_.push_back(
        lay_out_temporaries(temporary_lives(plan, lives, static_cast<Slot>(s)), kAlignment));
    allocations_.back()[s].bytes = temporaries_.back().total_bytes;
  }
}

void Shards::share_source(TensorId tensor) {
  const Request& request = plan_.request(tensor);
  std::vector<Slot>& holder = holder_.emplace_back(plan_.slot_count(), -1);
  std::vector<Slot>& sources = holders_[to_index(source_of(tensor))];
  std::vector<Slot> slots = slots_of_mesh(plan_, request.source().mesh());
  std::vector<std::int32_t> replicas = first_replicas(request);
  // For each set of replicas, its lowest slot.
  std::vector<Slot> first(replicas.size(), -1);
  for (std::size_t p = 0; p < slots.size(); ++p) {
    Slot& least = first[to_index(replicas[p])];
    if (least < 0 || slots[p] < least) least = slots[p];
  }
  for (std::size_t p = 0; p < slots.size(); ++p) {
    Slot from = first[to_index(replicas[p])];
    holder[to_index(slots[p])] = from;
    if (from == slots[p]) sources.push_back(from);
  }
  std::sort(sources.begin(), sources.end());
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
  bool temporary = to_index(buffer) >= holders_.size();
  Slot holder = slot;
  if (plan_.buffer(buffer).role() == BufferRole::Source)
    holder = holder_[to_index(plan_.buffer(buffer).tensor())][to_index(slot)];
  const Allocation& allocation =
      (temporary ? allocations_.back() : allocations_[to_index(buffer)])[to_index(holder)];
  if (allocation.bytes == 0) return nullptr;
  std::byte* begin =
      allocated_ ? allocation.memory.data() : reinterpret_cast<std::byte*>(kAlignment);
  return temporary ? begin + temporaries_[to_index(slot)].offset[to_index(buffer)] : begin;
}

}  // namespace reshard::backends::cuda
