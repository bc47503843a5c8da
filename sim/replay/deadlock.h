// SPDX-License-Identifier: BSD-3-Clause
// Whether the workload of a trace can run at all, and whether it could hang on a real machine.
#pragma once

#include <cstdint>
#include <optional>

#include "core/traffic/workload.h"
#include "sim/network/order.h"
#include "sim/trace/trace.h"
#include "sim/transport/communicators.h"

namespace reshard::sim {

// A cycle of operations that wait for each other for ever: because ranks issue the ends of messages
// or the calls of collectives in incompatible orders on streams, communicators or launch queues, or
// because an `after` contradicts such an order. Runs the workload with transfers and computes that
// take no time: what a rank can do next does not depend on time, so what blocks here always blocks.
// Ranks must be below `devices`. Operation i of the trace must be operation i of the workload,
// which may have setups after those. `launch_queue`: the most launches that a rank has issued and
// not finished; 0: any number.
std::optional<TraceFinding> find_deadlock(const Trace& trace, const Workload& workload,
                                          const Order& order, std::int32_t devices,
                                          std::int64_t launch_queue);

// Ranks that would use different communicators for the two ends of a message, or ranks that never
// reach the operation before which all ranks must create a communicator.
std::optional<TraceFinding> find_parent_mismatch(const Trace& trace, const Workload& workload,
                                                 const CommunicatorUse& use);

// The first finding of find_deadlock and, unless the launch order is implicit, of
// find_crossed_launches.
std::optional<TraceFinding> find_hang(const Trace& trace, const Workload& workload,
                                      const Order& order, const Topology& topology);

// Operations of several communicators that ranks launch in contradicting orders, without a stream
// or `after` that decides which comes first. If their kernels do not all fit on the GPU at once,
// they wait for each other; NCCL therefore forbids this without NCCL_LAUNCH_ORDER_IMPLICIT.
std::optional<TraceFinding> find_crossed_launches(const Trace& trace, const Workload& workload,
                                                  const Order& order);

}  // namespace reshard::sim
