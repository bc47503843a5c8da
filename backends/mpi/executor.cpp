// SPDX-License-Identifier: BSD-3-Clause
#include "backends/mpi/executor.h"

#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "backends/mpi/deadline.h"
#include "backends/mpi/prepared.h"
#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/schedule/accounting.h"

namespace reshard::backends::mpi {
namespace {

std::int64_t memory_of_node_bytes() {
  return std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
}

std::shared_ptr<World> whole_world(const WorldOptions& options) {
  Deadline deadline("making communicators", options.time_limit_s);
  return std::make_shared<World>(MPI_COMM_WORLD, options);
}

}  // namespace

MpiExecutor::MpiExecutor(const WorldOptions& options)
    : session_(std::make_unique<Session>(options.time_limit_s)),
      world_(whole_world(options)),
      processes_(*world_) {}

MpiExecutor::MpiExecutor(MPI_Comm comm, const WorldOptions& options)
    : world_(std::make_shared<World>(comm, options)), processes_(*world_) {}

MpiExecutor::~MpiExecutor() {
  if (world_->broken) Session::abandon();
}

// From the plan alone, so that all processes say the same.
void MpiExecutor::check_runnable(const Plan& plan, bool own_shards) const {
  int started = world_->size;
  if (int last = to_int(plan.ranks.back()); last >= started)
    throw InputError(fmt::format("the request names rank {}; mpirun started {} process{}", last,
                                 started, started == 1 ? "" : "es"));
  if (!own_shards) return;
  std::vector<std::int64_t> peaks = count_bytes(plan).peak_per_slot;
  std::int64_t needed = 0, there = memory_of_node_bytes();
  for (std::size_t slot = 0; slot < plan.slot_count(); ++slot)
    if (world_->node_place[static_cast<std::size_t>(to_int(plan.ranks[slot]))] >= 0)
      needed += peaks[slot];
  if (needed > there)
    throw InputError(fmt::format("the shards of this machine's ranks take {}; it has {}",
                                 bytes_text(needed), bytes_text(there)));
}

std::unique_ptr<PreparedPlan> MpiExecutor::prepare(const Plan& plan) {
  check_runnable(plan, true);
  return std::make_unique<MpiPrepared>(plan, world_, std::span<const CallerShards>());
}

std::unique_ptr<PreparedPlan> MpiExecutor::prepare(const Plan& plan,
                                                   std::span<const CallerShards> shards) {
  check_runnable(plan, false);
  return std::make_unique<MpiPrepared>(plan, world_, shards);
}

}  // namespace reshard::backends::mpi
