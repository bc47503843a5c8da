// SPDX-License-Identifier: BSD-3-Clause
// A plan prepared on one device: shards, tables, streams and events.
#pragma once

#include <string>
#include <vector>

#include "backends/cuda/executor.h"
#include "backends/cuda/shards.h"
#include "backends/device/launch_tables.h"
#include "backends/device/owners.h"
#include "core/schedule/step_streams.h"

namespace reshard::backends::cuda {

// Adds a step's launches for all ranks: every message is copied straight from buffer to buffer.
inline std::vector<LaunchTables::Id> add_step(const Plan& plan, const Step& step,
                                              const Shards& shards, LaunchTables& tables) {
  return add_operations([&](Operations& out) { lower(plan, step, out); }, shards, tables);
}

class Prepared : public PreparedPlan {
 public:
  // Allocates the shards; the caller has checked that shards and tables fit.
  Prepared(Device& device, const Plan& plan, Shards shards, const ExecutorOptions& options);

  void fill(const FillSource& fill, TensorId tensor) override;
  Timeline run() override;
  void take(const TakeDestination& take, TensorId tensor) override;

 private:
  struct StepRun {
    std::vector<LaunchTables::Id> launches;
    StreamedStep place;
    EventOwner begin, end;
  };
  Stream stream(int index) const { return streams_[to_index(index)].get(); }
  void start(const StepRun& step);
  // Waits for all work given to the stream so far. If the device does not respond in time, throws
  // BackendError, and leaves all memory that the device may still touch allocated until the process
  // ends.
  void finish(Stream stream, const std::string& what);
  std::int64_t largest_bytes(BufferId shard) const;

  Device& device_;
  const Plan& plan_;
  ExecutorOptions options_;
  Shards shards_;
  LaunchTables tables_;
  std::vector<StreamOwner> streams_;
  std::vector<StepRun> steps_;
  EventOwner origin_, finished_;
};

}  // namespace reshard::backends::cuda
