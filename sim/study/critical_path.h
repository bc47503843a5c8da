// SPDX-License-Identifier: BSD-3-Clause
// What the time of a run was waited for, from 0 to its end: the longest chain of transfers and
// computes (wait_log.h), each cut into what it cost and what bounded its rate.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/topology/topology.h"
#include "core/traffic/workload.h"
#include "sim/network/carrier.h"
#include "sim/network/fault.h"
#include "sim/network/order.h"

namespace reshard::sim {

enum class WaitedFor : std::uint8_t {
  Resource,  // its flows shared it, and none of them could have had more; or it was down
  Latency,   // of the route
  Launch,    // what the transport takes before the first byte, beside the route's latency
  Cap,       // the rate that the route allows one flow
  Protocol,  // the rate that the transport allows it
  Compute
};

struct PathPart {
  OpId op;
  std::int32_t step;  // of the plan; -1 where there is none
  WaitedFor cause;
  ResourceId resource;  // of WaitedFor::Resource, else -1
  std::int64_t start_ps, end_ps;
  bool differs_in_time_only(const PathPart& other) const {
    return op == other.op && step == other.step && cause == other.cause &&
           resource == other.resource;
  }
  friend bool operator==(const PathPart&, const PathPart&) = default;
};

// "node0.gpu3.nvlink.out", "latency", "launch", "cap", "protocol", "compute".
std::string cause_text(const PathPart& part, const Topology& topology);

// Each part longer than 0, beginning where the one before it ends, the first at 0 and the last
// ending with the run; neighbours differ. The run is simulated twice: only once its chain is known
// can what bounds it be asked for. None where it has more than WaitLog::kMaxWaits transfers. Throws
// what run() throws.
std::optional<std::vector<PathPart>> critical_path(const Workload& workload,
                                                   const Topology& topology, Carriers carriers = {},
                                                   const Order* order = nullptr,
                                                   std::span<const Fault> faults = {});

}  // namespace reshard::sim
