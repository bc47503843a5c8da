// SPDX-License-Identifier: BSD-3-Clause
// The processes of a communicator, behind core's seam.
#pragma once

#include "backends/mpi/world.h"
#include "core/plan/executor.h"

namespace reshard::backends::mpi {

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

}  // namespace reshard::backends::mpi
