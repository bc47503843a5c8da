// SPDX-License-Identifier: BSD-3-Clause
// Runs plans on GPUs, one rank each, carried by NCCL. Rank r of a plan is rank r of the job. A process drives one rank, or the only process drives all ranks on its GPUs.
//
// Everything above the two thin interfaces (nccl_api.h, device.h) is here, so that tests run it on machines without GPUs.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/device/device.h"
#include "backends/nccl/actions.h"
#include "backends/nccl/communicators.h"
#include "backends/nccl/meeting.h"
#include "backends/nccl/nccl_api.h"
#include "core/plan/executor.h"

namespace reshard::backends::nccl {

// What an executor is made of.
struct Job {
  std::unique_ptr<NcclApi> api;
  std::unique_ptr<Meeting> meeting = std::make_unique<Meeting>();
  std::int32_t world = 1;
  std::vector<std::int32_t> ranks;               // of this process, ascending
  std::vector<std::unique_ptr<Device>> devices;  // one per rank
  std::int32_t ranks_per_device = 1;             // that share one GPU's memory, at most
  std::chrono::milliseconds limit{300'000};
  bool declared_order = false;
  CommunicatorPolicies policies = {};
  std::function<void(const std::string&)> warn = {};
};

class NcclExecutor : public Executor {
 public:
  // Makes the communicator over all ranks; collective.
  explicit NcclExecutor(Job job);
  ~NcclExecutor() override;

  std::string_view name() const override { return "nccl"; }
  Processes& processes() override { return *job_.meeting; }
  // Collective. Memory is looked at on all processes before any takes some: either all go on or all throw the same InputError.
  std::unique_ptr<PreparedPlan> prepare(const Plan& plan) override;
  bool folds_in_own_order(const Plan& plan) const override;

  Communicators& communicators() { return *communicators_; }

 private:
  void check_ranks(const Plan& plan) const;
  void make_communicators(const Plan& plan);

  Job job_;
  ActionOptions options_;
  std::unique_ptr<Communicators> communicators_;
};

}  // namespace reshard::backends::nccl
