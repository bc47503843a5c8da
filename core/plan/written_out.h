// SPDX-License-Identifier: BSD-3-Clause
// The plan of a job's tensors from one in which tensors that lie alike are series.
#pragma once

#include <vector>

#include "core/plan/plan.h"
#include "core/plan/series.h"

namespace reshard {

// A job that is planned in series.
struct JobInSeries {
  std::vector<Request> tensors;
  Stages stages;  // of the tensors
  SeriesJob series;
};

// From the plan of the job's series that of its tensors: the same steps and messages, with a box
// for every tensor where the plan has one for tensors of a series. Throws InputError if these are
// more than a step can have.
Plan written_out(const Plan& plan, const JobInSeries& job);

}  // namespace reshard
