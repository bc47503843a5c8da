// SPDX-License-Identifier: BSD-3-Clause
// Runs plans on GPUs, one rank per GPU, over NCCL. Rank r of a plan is rank r of the job. A process
// drives one rank, or a single process drives all ranks on its GPUs.
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

// Everything that an executor needs.
struct Job {
  std::shared_ptr<NcclApi> api;
  std::vector<std::shared_ptr<Device>> devices;  // one per rank
  std::unique_ptr<Meeting> meeting = std::make_unique<Meeting>();
  std::int32_t world = 1;
  std::vector<std::int32_t> ranks;    // those of this process, ascending
  std::int32_t ranks_per_device = 1;  // the most ranks that share one GPU's memory
  std::chrono::milliseconds limit{300'000};
  bool declared_order = false;
  bool over_parent = false;  // see ActionOptions in actions.h
  // The communicator over all ranks, if it exists already.
  std::optional<CallerCommunicator> caller;
  CommunicatorPolicies policies = {};
  std::function<void(const std::string&)> warn = {};
};

class NcclExecutor : public Executor {
 public:
  // Collective, as it makes the communicator over all ranks, unless the caller lends one.
  explicit NcclExecutor(Job job);
  ~NcclExecutor() override;

  std::string_view name() const override { return "nccl"; }
  Processes& processes() override { return *job_.meeting; }
  // Collective. Plans and free memory are compared on all processes before any allocates: either
  // all go on, or all throw the same InputError.
  std::unique_ptr<PreparedPlan> prepare(const Plan& plan) override { return make_ready(plan, {}); }
  // The same for shards, by tensor, in the caller's memory; this process must drive exactly one
  // rank. Do not call fill or take then. A problem that one rank finds with its shards is reported
  // to all.
  std::unique_ptr<Prepared> prepare(const Plan& plan, std::span<const CallerShards> shards) {
    return make_ready(plan, shards);
  }
  // Call instead of prepare() if this process cannot even call that: the other processes learn why.
  // Throws the InputError that they throw.
  [[noreturn]] void refuse(const std::string& why);
  // The GPU memory that prepare would allocate in addition to these shards. Not collective.
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

// Handles ranks that share a GPU. NCCL 2.30 and newer allow it if environment variables are set:
// these are set through `set`, unless the user has set them, and a warning is given; an older NCCL
// throws InputError. Call before NCCL is first used.
void allow_sharing(const launch::Placement& placement, int nccl_version,
                   const launch::Environment& environment,
                   const std::function<void(const char*, const char*)>& set,
                   const std::function<void(const std::string&)>& warn);

}  // namespace reshard::backends::nccl
