// SPDX-License-Identifier: BSD-3-Clause
// The seam behind which plans are run on real bytes: the in-process store, MPI, CUDA, NCCL.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>

#include "core/plan/plan.h"
#include "core/plan/timeline.h"

namespace reshard {

// Called once per source rank that this process holds, ascending: write the rank's local source shard (dense row-major, little-endian) into `bytes`.
// An executor in which replicas share memory (the store) calls it for the first of them only.
using FillSource = std::function<void(Rank rank, std::span<std::byte> bytes)>;
// Called once per destination rank that this process holds, ascending, with its finished shard.
using TakeDestination = std::function<void(Rank rank, std::span<const std::byte> bytes)>;

class Executor {
 public:
  virtual ~Executor() = default;
  virtual std::string_view name() const = 0;
  // Runs a proved plan. Throws InputError when it cannot fit, BackendError when a call fails. The timeline holds measured spans; its clock starts at 0 when the first
  // step begins and is the only thing that may differ between two runs.
  virtual Timeline run(const Plan& plan, const FillSource& fill, const TakeDestination& take) = 0;
};

}  // namespace reshard
