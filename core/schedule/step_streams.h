// SPDX-License-Identifier: BSD-3-Clause
// Which stream each step runs on, and what it waits for.
//
// On one device a step is one or two launches for all ranks, so dependencies hold between whole
// steps: the union of the plan's dependencies for its ranks, and of what reuse of temporaries'
// memory adds. A step runs on the stream of a step that it depends on if that stream has nothing
// later on it; otherwise it gets a stream of its own while there are unused ones.
// Waits that an earlier wait implies are left out.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"
#include "core/schedule/temporaries.h"

namespace reshard {

// For each step the earlier steps that must be complete before it starts. `temporaries` by slot.
Before steps_before(const Plan& plan, const std::vector<TemporaryLayout>& temporaries);

struct StreamedStep {
  int stream = 0;
  std::vector<std::int32_t> waits;  // for steps on other streams, ascending
};

// Steps are assigned to streams in listed order.
std::vector<StreamedStep> assign_streams(const Before& before, int streams);

}  // namespace reshard
