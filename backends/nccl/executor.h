// SPDX-License-Identifier: BSD-3-Clause
// Runs plans on GPUs, one rank each, carried by NCCL. Rank r of a plan is rank r of the job. A
// process drives one rank, or the only process drives all ranks on its GPUs.
//
// Everything above the two thin interfaces (nccl_api.h, device.h) is here, so that tests run it on
// machines without GPUs.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/device/device.h"
#include "backends/launch/meeting.h"
#include "backends/launch/place.h"
#include "backends/nccl/actions.h"
#include "backends/nccl/caller.h"
#include "backends/nccl/communicators.h"
#include "backends/nccl/nccl_api.h"
#include "backends/nccl/prepared.h"
#include "core/plan/executor.h"

namespace reshard::backends::nccl {

// What an executor is made of.
struct Job {
  std::shared_ptr<NcclApi> api;
  std::vector<std::shared_ptr<Device>> devices;  // one per rank
  std::unique_ptr<Meeting> meeting = std::make_unique<Meeting>();
  std::int32_t world = 1;
  std::vector<std::int32_t> ranks;    // of this process, ascending
  std::int32_t ranks_per_device = 1;  // that share one GPU's memory, at most
  std::chrono::milliseconds limit{300'000};
  bool declared_order = false;
  bool over_parent = false;  // actions.h
  // The communicator over all ranks, where it is there already.
  std::optional<CallerCommunicator> caller;
  CommunicatorPolicies policies = {};
  std::function<void(const std::string&)> warn = {};
};

class NcclExecutor : public Executor {
 public:
  // Makes the communicator over all ranks, and is collective, unless the caller's is used.
  explicit NcclExecutor(Job job);
  ~NcclExecutor() override;

  std::string_view name() const override { return "nccl"; }
  Processes& processes() override { return *job_.meeting; }
  // Collective. Plans are compared and memory is looked at on all processes before any takes some:
  // either all go on or all throw the same InputError.
  std::unique_ptr<PreparedPlan> prepare(const Plan& plan) override { return make_ready(plan, {}); }
  // The same on shards, by tensor, that lie in the caller's memory, where the process drives one
  // rank; neither fill nor take is needed then. What a rank finds wrong with its shards is told to
  // all.
  std::unique_ptr<Prepared> prepare(const Plan& plan, std::span<const CallerShards> shards) {
    return make_ready(plan, shards);
  }
  // Instead of prepare(), where this process cannot even ask for that: the others learn why. Throws
  // what they do.
  [[noreturn]] void refuse(const std::string& why);
  // Of GPU memory that prepare would take beside these shards. Not collective.
  std::int64_t needed_bytes(const Plan& plan, std::span<const CallerShards> shards);
  bool folds_in_own_order(const Plan& plan) const override;

  Communicators& communicators() { return *communicators_; }

 private:
  std::unique_ptr<Prepared> make_ready(const Plan& plan, std::span<const CallerShards> shards);
  std::string trouble_with_ranks(const Plan& plan) const;
  void make_communicators(const Plan& plan);

  Job job_;
  ActionOptions options_;
  std::unique_ptr<Communicators> communicators_;
};

// Where ranks share a GPU: NCCL from 2.30 on takes it when told so by environment variables, which
// are set unless the user has set them, and a warning is due; with an older one InputError. To be
// called before NCCL is first used.
void allow_sharing(const launch::Placement& placement, int nccl_version,
                   const launch::Environment& environment,
                   const std::function<void(const char*, const char*)>& set,
                   const std::function<void(const std::string&)>& warn);

}  // namespace reshard::backends::nccl
