// SPDX-License-Identifier: BSD-3-Clause
// The use of each tensor of a job in a run: the bytes that ranks received of it, and when.
#pragma once

#include <cstdint>
#include <optional>

#include "core/plan/executor.h"
#include "core/plan/plan.h"
#include "core/plan/series.h"

namespace reshard::sim {

struct TensorUse {
  std::int64_t received_bytes = 0;  // from other ranks, summed over ranks, padding included
  // From the start of its first transfer to the end of its last one; none if it had none. A message
  // starts when both of its ranks have reached the step, and ends with the part of the rank that
  // ends first: a rank's part of a step is one span, however many messages it has.
  std::optional<std::int64_t> first_ps, last_ps;

  // Adds the bytes; the times cover both.
  TensorUse& operator+=(const TensorUse& more);
  friend bool operator==(const TensorUse&, const TensorUse&) = default;
};

// By tensor of the plan, which ran as operation `op` of the timeline; if `job` is given, by tensor
// of that job, of which the plan has series. Needs Timeline::spans. Takes time linear in the boxes
// that move.
IndexVector<TensorId, TensorUse> tensor_uses(const Plan& plan, const Timeline& timeline,
                                             OpId op = OpId{0}, const SeriesJob* job = nullptr);

}  // namespace reshard::sim
