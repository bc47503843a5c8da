// SPDX-License-Identifier: BSD-3-Clause
// The processes of a job make sure that they are about to do the same: each derives its part from
// its own copy of the plan, and parts of two plans would meet in wrong bytes.
#pragma once

#include <string>

#include "core/plan/executor.h"
#include "core/plan/plan.h"

namespace reshard::backends::launch {

// Collective. Throws one InputError on all processes where plans differ, naming what does, or where
// some process has a trouble: the first one's. `plan` null: this process could not get so far.
void agree_on_plan(Processes& processes, const Plan* plan, const std::string& trouble);

}  // namespace reshard::backends::launch
