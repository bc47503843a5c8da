// SPDX-License-Identifier: BSD-3-Clause
// The C API: a rank's program over the caller's exchange function and buffers.
#include <memory>

#include "core/bytes/block.h"
#include "tools/capi/guard.h"
#include "tools/capi/handles.h"
#include "tools/capi/host_run.h"

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

void require_exactly(const char* name, std::int64_t expected, std::int64_t found) {
  if (expected != found)
    throw InputError(std::string(name) + ": expected " + std::to_string(expected) +
                     ", the size of the rank's shard, found " + std::to_string(found));
}

// The caller's memory, checked; `own` becomes the arena where the caller gives none.
HostBuffers buffers_of(const reshard_program& program, const reshard_run& run,
                       std::unique_ptr<Block>& own) {
  const Plan& plan = *program.plan;
  std::int64_t width = size_bytes(plan.request().dtype());
  require_exactly("source_bytes", buffer_of(plan, program.program.slot, 0).bytes, run.source_bytes);
  require_exactly("destination_bytes", buffer_of(plan, program.program.slot, 1).bytes,
                  run.destination_bytes);
  void* arena = run.arena;
  std::int64_t arena_bytes = program.temporaries.total_bytes;
  if (arena == nullptr) {
    own = std::make_unique<Block>(arena_bytes);
    arena = own->data();
  } else if (run.arena_bytes < arena_bytes) {
    throw InputError("arena_bytes: expected at least " + std::to_string(arena_bytes) + ", found " +
                     std::to_string(run.arena_bytes));
  }
  Memory source{"source", run.source, run.source_bytes},
      destination{"destination", run.destination, run.destination_bytes},
      temporaries{"arena", arena, arena_bytes};
  for (const Memory& memory : {source, destination, temporaries}) require_memory(memory, width);
  for (const auto& [a, b] :
       {std::pair{source, destination}, {source, temporaries}, {destination, temporaries}})
    if (a.overlaps(b))
      throw InputError(std::string(b.name) + ": expected memory apart from the " + a.name +
                       ", found an overlap");
  return {static_cast<const std::byte*>(run.source), static_cast<std::byte*>(run.destination),
          static_cast<std::byte*>(arena)};
}

}  // namespace

extern "C" int32_t reshard_execute(const reshard_program* program, const reshard_run* run) {
  return guarded([&] {
    const reshard_program& handle = given(program, "program");
    reshard_run with = taken(run, "run");
    require_zero(with.reserved, "run.reserved");
    std::unique_ptr<Block> own;
    HostBuffers buffers = buffers_of(handle, with, own);
    std::int32_t rank = to_int(handle.plan->ranks[static_cast<std::size_t>(handle.program.slot)]);
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
    run_program(*handle.plan, handle.program, handle.temporaries, buffers, exchange);
  });
}
