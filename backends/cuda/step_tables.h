// SPDX-License-Identifier: BSD-3-Clause
// A step for all ranks at once as launches on one device: every message goes straight from the
// source rank's buffer to the destination rank's, nothing is packed.
#pragma once

#include <vector>

#include "backends/cuda/shards.h"
#include "backends/device/launch_tables.h"
#include "core/plan/plan.h"

namespace reshard::backends::cuda {

// Adds the step's launches to `tables`; they run one after the other. The shards may still be
// without memory (shards.h).
std::vector<LaunchTables::Id> add_step(const Plan& plan, const Step& step, const Shards& shards,
                                       LaunchTables& tables);

}  // namespace reshard::backends::cuda
