// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/executor.h"

#include <fmt/core.h>

#include "backends/cuda/prepared.h"
#include "core/base/errors.h"
#include "core/base/units.h"

namespace reshard::backends::cuda {

std::unique_ptr<PreparedPlan> CudaExecutor::prepare(const Plan& plan) {
  Shards shards(plan);
  // A first pass on placeholder addresses, for the size of the tables.
  LaunchTables tables;
  for (const Step& step : plan.steps) add_step(plan, step, shards, tables);
  std::int64_t needed = shards.needed_bytes() + tables.bytes(), free = device_->free_bytes();
  if (needed > free)
    throw InputError(fmt::format(
        "the plan needs {} of device memory for the shards of all ranks, but {} is free ({})",
        bytes_text(needed), bytes_text(free), device_->description()));
  return std::make_unique<Prepared>(*device_, plan, std::move(shards), options_);
}

}  // namespace reshard::backends::cuda
