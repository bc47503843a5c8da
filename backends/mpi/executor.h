// SPDX-License-Identifier: BSD-3-Clause
// Plans on MPI: one process per rank, bytes in host memory. Global rank r is process r of the
// communicator.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "backends/mpi/session.h"
#include "backends/mpi/world.h"
#include "core/plan/executor.h"

namespace reshard::backends::mpi {

// The processes of a communicator, behind core's seam.
class MpiProcesses : public Processes {
 public:
  // Keeps the world by reference.
  explicit MpiProcesses(World& world) : world_(world) {}
  int index() const override { return world_.rank; }
  int count() const override { return world_.size; }
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine) override;
  std::vector<std::byte> broadcast(std::span<const std::byte> mine) override;
  void abort(int exit_code) noexcept override;

 private:
  // In chunks, one after another.
  void send(std::span<const std::byte> bytes, int to);
  void receive(std::span<std::byte> bytes, int from);

  World& world_;
};

class MpiExecutor : public Executor {
 public:
  // Over all processes; initialises MPI where nobody has, and then ends it with the program.
  explicit MpiExecutor(const WorldOptions& options);
  // Over a caller's communicator, which is duplicated. Collective over it, as is the destructor.
  MpiExecutor(MPI_Comm comm, const WorldOptions& options);
  ~MpiExecutor() override;

  std::string_view name() const override { return "mpi"; }
  Processes& processes() override { return processes_; }
  // Collective. All processes have the same plan and can run it, or all throw the same InputError.
  std::unique_ptr<PreparedPlan> prepare(const Plan& plan) override;
  // Runs on the caller's shards, by tensor, in place: neither fill nor take is needed. Their memory
  // must stay until the prepared plan is gone.
  std::unique_ptr<PreparedPlan> prepare(const Plan& plan, std::span<const CallerShards> shards);
  // Instead of prepare(), where this process cannot even ask for that: the others learn why. Throws
  // what they do.
  [[noreturn]] void refuse(const std::string& why);

  // Whether processes of this node share memory.
  bool shares_memory() const { return world_->rings != nullptr; }

 private:
  std::unique_ptr<PreparedPlan> make_ready(const Plan& plan, std::span<const CallerShards> shards,
                                           bool own_shards);
  void check_runnable(const Plan& plan, bool own_shards) const;

  std::unique_ptr<Session> session_;  // null over a caller's communicator
  std::shared_ptr<World> world_;
  MpiProcesses processes_;
};

}  // namespace reshard::backends::mpi
