// SPDX-License-Identifier: BSD-3-Clause
// Which step runs on which stream, and what it waits for there.
//
// On one device a step is one or two launches for all ranks, so that dependencies hold between
// whole steps: the union of what the plan says for its ranks, and what the memory of temporaries
// adds. A step follows one that it depends on, on the same stream, where that stream has nothing
// else on it; steps that depend on nothing of each other get streams of their own while there are
// any. A wait that an earlier one implies is left out.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"
#include "core/schedule/temporaries.h"

namespace reshard {

// Per step the earlier steps that must be complete before it starts. `temporaries` by slot.
Before steps_before(const Plan& plan, const std::vector<TemporaryLayout>& temporaries);

struct StreamedStep {
  int stream = 0;
  std::vector<std::int32_t> waits;  // for steps on other streams, ascending
};

// Steps are given to their streams in listed order.
std::vector<StreamedStep> assign_streams(const Before& before, int streams);

}  // namespace reshard
