// SPDX-License-Identifier: BSD-3-Clause
// Runs plans with every rank's shards in one device's memory. It uses only the Device interface, so
// that tests run it on machines without a GPU.
#pragma once

#include <memory>

#include "backends/device/device.h"
#include "core/plan/executor.h"

namespace reshard::backends::cuda {

struct ExecutorOptions {
  std::int64_t time_limit_s = 300;  // for any wait on the device
  int streams = 4;
};

class CudaExecutor : public Executor {
 public:
  CudaExecutor(std::unique_ptr<Device> device, ExecutorOptions options)
      : device_(std::move(device)), options_(options) {}

  std::string_view name() const override { return "cuda"; }
  // Each step runs once for all its ranks, so they all get the step's span, measured by events on
  // the device. `fill` is called for the first rank of every set of source replicas. The executor
  // must outlive the returned plan.
  std::unique_ptr<PreparedPlan> prepare(const Plan& plan) override;

 private:
  std::unique_ptr<Device> device_;
  ExecutorOptions options_;
};

}  // namespace reshard::backends::cuda
