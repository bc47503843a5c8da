// SPDX-License-Identifier: BSD-3-Clause
// The C API: a rank's program over the caller's exchange function and buffers.
#include <vector>

#include "tools/capi/guard.h"
#include "tools/capi/handles.h"
#include "tools/capi/host_run.h"
#include "tools/capi/shards.h"

using namespace reshard;
using namespace reshard::capi;

namespace {

struct Memory {
  const char* name;
  const void* data;
  std::int64_t bytes;

  std::uintptr_t begin() const { return reinterpret_cast<std::uintptr_t>(data); }
  bool overlaps(const Memory& other) const {
    return bytes > 0 && other.bytes > 0 &&
           begin() < other.begin() + static_cast<std::uintptr_t>(other.bytes) &&
           other.begin() < begin() + static_cast<std::uintptr_t>(bytes);
  }
};

void require_memory(const Memory& memory, std::int64_t element_bytes) {
  if (memory.bytes > 0 && memory.data == nullptr)
    throw InputError(std::string(memory.name) + ": expected memory of " +
                     std::to_string(memory.bytes) + " bytes, found NULL");
  if (memory.begin() % static_cast<std::uintptr_t>(element_bytes) != 0)
    throw InputError(std::string(memory.name) + ": expected memory aligned to elements of " +
                     std::to_string(element_bytes) + " bytes");
}

void require_exactly(const char* name, std::int64_t expected, std::size_t found) {
  if (expected != static_cast<std::int64_t>(found))
    throw InputError(std::string(name) + ": expected " + std::to_string(expected) +
                     ", the size of the rank's shard, found " + std::to_string(found));
}

Memory memory_of(const char* name, std::span<const std::byte> bytes) {
  return {name, bytes.data(), static_cast<std::int64_t>(bytes.size())};
}

// By tensor.
std::vector<CallerShards> lent_to(const reshard_program& program, const reshard_run& run) {
  if (run.tensors == nullptr) {
    if (program.plan->tensors.size() > 1)
      throw InputError("tensors: expected shards of " +
                       std::to_string(program.plan->tensors.size()) + " tensors, found NULL");
    reshard_shards only{sizeof(reshard_shards), 0, run.source, run.source_bytes, run.destination,
                        run.destination_bytes};
    return shards_of(&only, 1);
  }
  if (run.source != nullptr || run.destination != nullptr)
    throw InputError("source, destination: expected NULL beside tensors");
  return shards_of(run.tensors, program.plan->tensors.size());
}

void check(const RankSchedule& schedule, const std::vector<CallerShards>& shards,
           const Memory& arena) {
  std::vector<Memory> all;
  for (std::size_t t = 0; t < shards.size(); ++t) {
    TensorId tensor{static_cast<std::int32_t>(t)};
    const LocalBuffer& source = schedule.buffer(source_of(tensor));
    require_exactly("source_bytes", source.bytes(), shards[t].source.size());
    require_exactly("destination_bytes", schedule.buffer(destination_of(tensor)).bytes(),
                    shards[t].destination.size());
    all.push_back(memory_of("source", shards[t].source));
    all.push_back(memory_of("destination", shards[t].destination));
    for (const Memory& memory : {all.end()[-2], all.end()[-1], arena})
      require_memory(memory, size_bytes(source.dtype));
  }
  all.push_back(arena);
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = i + 1; j < all.size(); ++j) {
      bool sources = j % 2 == 0 && i % 2 == 0 && j + 1 < all.size();
      if (!sources && all[i].overlaps(all[j]))
        throw InputError(std::string(all[j].name) + ": expected memory apart from the " +
                         all[i].name + ", found an overlap");
    }
}

// The caller's memory, checked.
std::byte* arena_of(const reshard_program& program, const reshard_run& run) {
  if (run.arena != nullptr && run.arena_bytes < program.temporaries.total_bytes)
    throw InputError("arena_bytes: expected at least " +
                     std::to_string(program.temporaries.total_bytes) + ", found " +
                     std::to_string(run.arena_bytes));
  return static_cast<std::byte*>(run.arena);
}

}  // namespace

extern "C" int32_t reshard_execute(const reshard_program* program, const reshard_run* run) {
  return guarded([&] {
    const reshard_program& handle = given(program, "program");
    reshard_run with = taken(run, "run");
    require_zero(with.reserved, "run.reserved");
    std::vector<CallerShards> shards = lent_to(handle, with);
    std::byte* arena = arena_of(handle, with);
    check(handle.schedule, shards,
          {"arena", arena, arena == nullptr ? 0 : handle.temporaries.total_bytes});
    backends::host::RankMemory memory(handle.messages, shards);
    memory.lay_out(handle.temporaries, arena);
    memory.lay_out(handle.scratch);
    std::int32_t rank = to_int(handle.plan->rank_of(handle.schedule.slot));
    HostExchange exchange = [&](std::span<const reshard_transfer> sends,
                                std::span<const reshard_transfer> receives) {
      if (with.exchange == nullptr)
        throw InputError(
            "exchange: expected a function, as the program sends or receives, found NULL");
      int32_t code = 0;
      try {
        code = with.exchange(with.context, sends.data(), static_cast<int32_t>(sends.size()),
                             receives.data(), static_cast<int32_t>(receives.size()));
      } catch (...) {
        throw BackendError("caller", "exchange", "it threw an exception", rank);
      }
      if (code != 0)
        throw BackendError("caller", "exchange", "it returned " + std::to_string(code), rank);
    };
    run_schedule(*handle.plan, memory, exchange);
  });
}
