// SPDX-License-Identifier: BSD-3-Clause
#include "tools/capi/host/lent_memory.h"

#include <algorithm>
#include <numeric>

#include "core/base/cursor.h"
#include "core/base/errors.h"

namespace reshard::capi {
namespace {

std::uintptr_t begin_of(const LentMemory& memory) {
  return reinterpret_cast<std::uintptr_t>(memory.data);
}
std::uintptr_t end_of(const LentMemory& memory) {
  return begin_of(memory) + static_cast<std::uintptr_t>(memory.bytes);
}

std::string name_of(const LentMemory& memory, const char* end = "") {
  std::string out = std::string(memory.name) + end;
  if (memory.tensor) out += " of tensor " + std::to_string(to_index(*memory.tensor));
  if (!memory.tensor_name.empty()) out += " " + quoted(memory.tensor_name);
  if (memory.rank >= 0) out += " of rank " + std::to_string(memory.rank);
  return out;
}

// Named in the order in which they are listed.
[[noreturn]] void refuse_overlap(const LentMemory& a, const LentMemory& b) {
  const LentMemory &first = &a < &b ? a : b, &second = &a < &b ? b : a;
  throw InputError(name_of(second) + ": expected memory separate from the " + name_of(first) +
                   ", found an overlap");
}

}  // namespace

void require_usable(const LentMemory& memory, std::int64_t element_bytes) {
  if (memory.bytes > 0 && memory.data == nullptr)
    throw InputError(name_of(memory) + ": expected memory of " + std::to_string(memory.bytes) +
                     " bytes, found NULL");
  if (begin_of(memory) % static_cast<std::uintptr_t>(element_bytes) != 0)
    throw InputError(name_of(memory) + ": expected memory aligned to elements of " +
                     std::to_string(element_bytes) + " bytes");
}

void check_shards(const Plan& plan, Slot slot, TensorId tensor, const CallerShards& shards,
                  bool name_rank, std::vector<LentMemory>& all) {
  auto check = [&](const char* name, BufferId buffer, std::span<const std::byte> bytes) {
    LentMemory memory{name, bytes.data(), static_cast<std::int64_t>(bytes.size()),
                      buffer == destination_of(tensor)};
    if (name_rank) memory.rank = to_int(plan.rank_of(slot));
    if (plan.tensors.size() > 1) {
      memory.tensor = tensor;
      memory.tensor_name = plan.request(tensor).name();
    }
    std::int64_t expected = plan.buffer_bytes(buffer, slot);
    if (memory.bytes != expected)
      throw InputError(name_of(memory, "_bytes") + ": expected " + std::to_string(expected) +
                       ", the size of the rank's shard, found " + std::to_string(memory.bytes));
    require_usable(memory, size_bytes(plan.request(tensor).dtype()));
    all.push_back(memory);
  };
  check("source", source_of(tensor), shards.source);
  check("destination", destination_of(tensor), shards.destination);
}

// In order of their starts: if memory overlaps any earlier memory, it overlaps the one that ends
// last. Among written memory that is the latest one, as written memory does not overlap.
void require_apart(const std::vector<LentMemory>& all) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t i) { return all[i].bytes == 0; });
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(begin_of(all[a]), a) < std::pair(begin_of(all[b]), b);
  });
  const LentMemory *last = nullptr, *last_written = nullptr;
  for (std::size_t i : order) {
    const LentMemory* memory = &all[i];
    const LentMemory* earlier = memory->written ? last : last_written;
    if (earlier != nullptr && begin_of(*memory) < end_of(*earlier))
      refuse_overlap(*earlier, *memory);
    if (last == nullptr || end_of(*memory) > end_of(*last)) last = memory;
    if (memory->written) last_written = memory;
  }
}

}  // namespace reshard::capi
