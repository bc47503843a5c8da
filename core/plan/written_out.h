// SPDX-License-Identifier: BSD-3-Clause
// Turns the plan of a job in series into the plan of its tensors.
#pragma once

#include <vector>

#include "core/plan/plan.h"
#include "core/plan/series.h"

namespace reshard {

// A job that is planned in series (series.h).
struct JobInSeries {
  std::vector<Request> tensors;
  Stages stages;  // of the tensors
  SeriesJob series;
};

// The plan of the job's tensors, made from that of its series: the same steps and messages, with a
// box for each tensor in place of a box of a series. Throws InputError if a step would have too
// many boxes.
Plan written_out(const Plan& plan, const JobInSeries& job);

}  // namespace reshard
