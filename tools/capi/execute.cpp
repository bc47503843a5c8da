// SPDX-License-Identifier: BSD-3-Clause
// The C API: runs a rank's program over the caller's exchange function and buffers, and runs a plan
// for all its ranks. The latter can reach every rank's memory, so nothing is packed or sent: the
// store, which also moves the data of `reshard simulate`, copies and folds boxes in place.
#include <vector>

#include "sim/store/store.h"
#include "tools/capi/guard.h"
#include "tools/capi/handles.h"
#include "tools/capi/host/host_run.h"
#include "tools/capi/host/lent_memory.h"
#include "tools/capi/shards.h"

using namespace reshard;
using namespace reshard::capi;

namespace {

// Checks the shards of all ranks, rank by rank.
void check(const Plan& plan, const std::vector<CallerShards>& shards) {
  std::vector<LentMemory> all;
  std::size_t tensors = plan.tensors.size();
  for (std::size_t i = 0; i < shards.size(); ++i)
    check_shards(plan, static_cast<Slot>(i / tensors), id_of<TensorId>(i % tensors), shards[i],
                 true, all);
  require_apart(all);
}

void lend(const Plan& plan, const std::vector<CallerShards>& shards, sim::StoreMemory& memory) {
  std::size_t tensors = plan.tensors.size();
  for (std::size_t i = 0; i < shards.size(); ++i) {
    auto slot = static_cast<Slot>(i / tensors);
    auto tensor = id_of<TensorId>(i % tensors);
    memory.lend_source(source_of(tensor), slot, shards[i].source);
    memory.lend_destination(destination_of(tensor), slot, shards[i].destination);
  }
}

}  // namespace

extern "C" int32_t reshard_execute(const reshard_program* program, const reshard_run* run) {
  return guarded([&] {
    const reshard_program& handle = given(program, "program");
    reshard_run with = taken(run, "run");
    require_zero(with.reserved, "run.reserved");
    std::int32_t rank = to_int(handle.plan->rank_of(handle.schedule.slot));
    HostExchange exchange = [&](std::span<const reshard_transfer> sends,
                                std::span<const reshard_transfer> receives) {
      if (with.exchange == nullptr)
        throw InputError(
            "exchange: expected a function, because the program sends or receives, found NULL");
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
    run_program(handle, with, whole_messages(*handle.plan, exchange));
  });
}

extern "C" int32_t reshard_execute_all(const reshard_plan* plan, const reshard_shards* shards,
                                       int64_t count) {
  return guarded([&] {
    const Plan& run = *given(plan, "plan").plan;
    std::size_t expected = run.slot_count() * run.tensors.size();
    if (count < 0 || to_index(count) != expected)
      throw InputError("count: expected " + std::to_string(expected) + ", shards of " +
                       std::to_string(run.tensors.size()) + " tensors on " +
                       std::to_string(run.slot_count()) + " ranks, found " + std::to_string(count));
    std::vector<CallerShards> lent = shards_of(shards, expected);
    check(run, lent);
    sim::StoreMemory memory(run);
    lend(run, lent, memory);
    Forwarding forwarding(run);
    sim::run_steps(run, forwarding, memory);
  });
}
