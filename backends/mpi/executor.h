// SPDX-License-Identifier: BSD-3-Clause
// Runs plans on MPI: one process per rank, with the bytes in host memory. Global rank r is process
// r of the communicator.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "backends/mpi/session.h"
#include "backends/mpi/world.h"
#include "core/plan/executor.h"

namespace reshard::backends::mpi {

// The processes of a communicator as core's Processes.
class MpiProcesses : public Processes {
 public:
  // Keeps a reference to `world`.
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
  // Over all processes. Initializes MPI if the process has not, and then finalizes it when the
  // program ends.
  explicit MpiExecutor(const WorldOptions& options);
  // Over a caller's communicator, which is duplicated. Constructor and destructor are collective
  // over it.
  MpiExecutor(MPI_Comm comm, const WorldOptions& options);
  ~MpiExecutor() override;

  std::string_view name() const override { return "mpi"; }
  Processes& processes() override { return processes_; }
  // Collective. Either all processes have the same plan and can run it, or all throw the same
  // InputError.
  std::unique_ptr<PreparedPlan> prepare(const Plan& plan) override;
  // Runs on the caller's shards, by tensor, in place: do not call fill or take. The shards must
  // outlive the prepared plan.
  std::unique_ptr<PreparedPlan> prepare(const Plan& plan, std::span<const CallerShards> shards);
  // Call instead of prepare() if this process cannot even call that: the other processes learn why.
  // Throws the InputError that they throw.
  [[noreturn]] void refuse(const std::string& why);

 private:
  std::unique_ptr<PreparedPlan> make_ready(const Plan& plan, std::span<const CallerShards> shards,
                                           bool own_shards);
  void check_runnable(const Plan& plan, bool own_shards) const;

  std::unique_ptr<Session> session_;  // null over a caller's communicator
  std::shared_ptr<World> world_;
  MpiProcesses processes_;
};

}  // namespace reshard::backends::mpi
