// SPDX-License-Identifier: BSD-3-Clause
// The lines of a trace that redistribute several tensors together.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "core/plan/executor.h"
#include "core/topology/topology.h"
#include "sim/study/studies.h"
#include "sim/study/tensors/job_facts.h"
#include "sim/trace/trace.h"
#include "sim/transport/transport.h"

namespace reshard::sim {

// Facts about the tensors of all such lines together; none if there are no such lines. `studies`
// (null for other operations) and `transports` are indexed by operation; `timeline` is that of the
// trace, with spans.
std::optional<JobFacts> job_facts_of(const Trace& trace,
                                     std::span<const std::shared_ptr<Study>> studies,
                                     std::span<const std::shared_ptr<const Carriage>> transports,
                                     const Timeline& timeline, const Topology& topology);

}  // namespace reshard::sim
