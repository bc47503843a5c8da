// SPDX-License-Identifier: BSD-3-Clause
// Whether the workload of a trace can run at all, and whether it may hang on a machine.
#pragma once

#include <cstdint>
#include <optional>

#include "core/traffic/workload.h"
#include "sim/network/order.h"
#include "sim/trace/trace.h"
#include "sim/transport/communicators.h"

namespace reshard::sim {

// Operations that wait for each other for ever, in a circle: by streams, communicators and launch
// queues in which ends and calls stand in orders that never meet, or an `after` against such an
// order. Ranks must lie below `devices`. The workload is run with transfers and compute that take
// no time; what a rank can do next depends on no time, so that what blocks here blocks always. Of
// each operation, operation i of the workload must be that of operation i of the trace.
std::optional<TraceFinding> find_deadlock(const Trace& trace, const Workload& workload,
                                          const Order& order, std::int32_t devices,
                                          std::int64_t launch_queue);

// Ranks that would use different communicators for the two ends of a message, or that never come
// where all have to make one.
std::optional<TraceFinding> find_torn(const Trace& trace, const Workload& workload,
                                      const CommunicatorUse& use);

// The first that is found of these and of crossed launches, which an implicit launch order allows.
std::optional<TraceFinding> find_hang(const Trace& trace, const Workload& workload,
                                      const Order& order, const Topology& topology);

// Operations of several communicators that ranks launch in orders which contradict each other,
// while no stream and no `after` says which comes first. Their kernels wait for each other where
// not all of them find room, so that NCCL forbids it without NCCL_LAUNCH_ORDER_IMPLICIT.
std::optional<TraceFinding> find_crossed_launches(const Trace& trace, const Workload& workload,
                                                  const Order& order);

}  // namespace reshard::sim
