// SPDX-License-Identifier: BSD-3-Clause
// Makes sure that the processes of a job are about to run the same plan: each derives its part from
// its own copy, and parts of two different plans would write wrong bytes.
#pragma once

#include <string>

#include "core/plan/executor.h"
#include "core/plan/plan.h"

namespace reshard::backends::launch {

// Collective. Throws the same InputError on all processes if plans differ (naming the difference)
// or if any process reports `trouble` (the first one's text). `plan` is null if this process failed
// before it had one.
void agree_on_plan(Processes& processes, const Plan* plan, const std::string& trouble);

}  // namespace reshard::backends::launch
