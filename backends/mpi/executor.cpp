// SPDX-License-Identifier: BSD-3-Clause
#include "backends/mpi/executor.h"

#include <algorithm>
#include <new>

#include <fmt/core.h>
#include <unistd.h>

#include "backends/launch/agreement.h"
#include "backends/mpi/prepared.h"
#include "backends/mpi/session.h"
#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/traffic/accounting.h"

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

// Depends only on the plan and the world, so that all processes decide the same.
void MpiExecutor::check_runnable(const Plan& plan, bool own_shards) const {
  int started = world_->size;
  if (int last = to_int(plan.ranks.back()); last >= started)
    throw InputError(fmt::format(
        "mpi: expected a process for rank {}, found {} process{} (mpirun -np {} starts as many)",
        last, started, started == 1 ? "" : "es", last + 1));
  if (!own_shards) return;
  std::vector<std::int64_t> peaks = count_bytes(plan).peak_per_slot;
  std::int64_t needed = 0, there = memory_of_node_bytes();
  for (std::size_t slot = 0; slot < plan.slot_count(); ++slot)
    if (world_->node_place[to_index(to_int(plan.ranks[slot]))] >= 0) needed += peaks[slot];
  if (needed > there)
    throw InputError(fmt::format("the shards of this machine's ranks need {}, but it has {}",
                                 bytes_text(needed), bytes_text(there)));
}

std::unique_ptr<PreparedPlan> MpiExecutor::prepare(const Plan& plan) {
  return make_ready(plan, {}, true);
}

std::unique_ptr<PreparedPlan> MpiExecutor::prepare(const Plan& plan,
                                                   std::span<const CallerShards> shards) {
  return make_ready(plan, shards, false);
}

std::unique_ptr<PreparedPlan> MpiExecutor::make_ready(const Plan& plan,
                                                      std::span<const CallerShards> shards,
                                                      bool own_shards) {
  std::unique_ptr<MpiPrepared> prepared;
  std::string trouble;
  try {
    check_runnable(plan, own_shards);
    prepared = std::make_unique<MpiPrepared>(plan, world_, shards);
  } catch (const InputError& error) {
    trouble = error.what();
  } catch (const std::bad_alloc&) {
    trouble = fmt::format("rank {}: plan: no memory for its buffers", world_->rank);
  }
  launch::agree_on_plan(processes_, &plan, trouble);
  prepared->connect();
  return prepared;
}

void MpiExecutor::refuse(const std::string& why) {
  launch::agree_on_plan(processes_, nullptr, fmt::format("rank {}: {}", world_->rank, why));
  throw InputError(why);  // only reached by a single process: otherwise agree_on_plan has thrown
}

namespace {

constexpr int kRoot = 0;
constexpr int kTag = 0;  // tags of steps are larger

std::span<const std::byte> bytes_of(const std::int64_t& value) {
  return std::as_bytes(std::span(&value, 1));
}
std::span<std::byte> bytes_of(std::int64_t& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

// Calls visit(chunk) for consecutive chunks of at most `limit` bytes.
template <class Byte, class Visit>
void for_each_chunk(std::span<Byte> bytes, std::int64_t limit, const Visit& visit) {
  auto most = to_index(limit);
  for (std::size_t at = 0; at < bytes.size(); at += most)
    visit(bytes.subspan(at, std::min(most, bytes.size() - at)));
}

}  // namespace

void MpiProcesses::send(std::span<const std::byte> bytes, int to) {
  for_each_chunk(bytes, world_.options.chunk_bytes, [&](std::span<const std::byte> chunk) {
    MPI_Request request = MPI_REQUEST_NULL;
    RESHARD_MPI_CALL(world_.rank, MPI_Isend(chunk.data(), static_cast<int>(chunk.size()), MPI_BYTE,
                                            to, kTag, world_.comm.get(), &request));
    world_.wait(request, "gather", to);
  });
}

void MpiProcesses::receive(std::span<std::byte> bytes, int from) {
  for_each_chunk(bytes, world_.options.chunk_bytes, [&](std::span<std::byte> chunk) {
    MPI_Request request = MPI_REQUEST_NULL;
    RESHARD_MPI_CALL(world_.rank, MPI_Irecv(chunk.data(), static_cast<int>(chunk.size()), MPI_BYTE,
                                            from, kTag, world_.comm.get(), &request));
    world_.wait(request, "gather", from);
  });
}

std::vector<std::vector<std::byte>> MpiProcesses::gather(std::span<const std::byte> mine) {
  std::vector<std::vector<std::byte>> out;
  auto size = static_cast<std::int64_t>(mine.size());
  if (!is_root()) {
    send(bytes_of(std::as_const(size)), kRoot);
    send(mine, kRoot);
    return out;
  }
  out.resize(to_index(count()));
  for (int process = 0; process < count(); ++process) {
    std::vector<std::byte>& bytes = out[to_index(process)];
    if (process == kRoot) {
      bytes.assign(mine.begin(), mine.end());
      continue;
    }
    receive(bytes_of(size), process);
    bytes.resize(to_index(size));
    receive(bytes, process);
  }
  return out;
}

std::vector<std::byte> MpiProcesses::broadcast(std::span<const std::byte> mine) {
  auto size = static_cast<std::int64_t>(mine.size());
  std::vector<std::byte> out;
  auto spread = [&](std::span<std::byte> bytes) {
    for_each_chunk(bytes, world_.options.chunk_bytes, [&](std::span<std::byte> chunk) {
      MPI_Request request = MPI_REQUEST_NULL;
      RESHARD_MPI_CALL(world_.rank, MPI_Ibcast(chunk.data(), static_cast<int>(chunk.size()),
                                               MPI_BYTE, kRoot, world_.comm.get(), &request));
      world_.wait(request, "broadcast", is_root() ? -1 : kRoot);
    });
  };
  spread(bytes_of(size));
  if (is_root()) out.assign(mine.begin(), mine.end());
  out.resize(to_index(size));
  spread(out);
  return out;
}

void MpiProcesses::abort(int exit_code) noexcept {
  if (count() > 1) MPI_Abort(world_.comm.get(), exit_code);
}

}  // namespace reshard::backends::mpi
