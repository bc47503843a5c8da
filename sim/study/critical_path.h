// SPDX-License-Identifier: BSD-3-Clause
// The critical path of a run, from 0 to its end: the chain of transfers and computes (wait_log.h)
// that decided the end, each split into fixed costs and what limited its rate.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/topology/topology.h"
#include "sim/network/wait_log.h"
#include "sim/study/limit_log.h"

namespace reshard::sim {

enum class WaitedFor : std::uint8_t {
  Resource,  // the resource was the bottleneck (its flows used all its capacity) or was down
  Latency,   // of the route
  Launch,    // what the transport takes before the first byte, on top of the route's latency
  Cap,       // the rate that the route allows one flow
  Protocol,  // the rate that the transport allows one flow
  Compute
};

struct PathPart {
  OpId op;
  std::int32_t step;  // of the plan; -1 if the operation has no steps
  WaitedFor cause;
  ResourceId resource;  // set for WaitedFor::Resource, else -1
  std::int64_t start_ps, end_ps;
  bool differs_in_time_only(const PathPart& other) const {
    return op == other.op && step == other.step && cause == other.cause &&
           resource == other.resource;
  }
  friend bool operator==(const PathPart&, const PathPart&) = default;
};

// "node0.gpu3.nvlink.out", "latency", "launch", "cap", "protocol", "compute".
std::string cause_text(const PathPart& part, const Topology& topology);

// The chain of waits of a run, each split by cause. `limits` is from the same run.
std::vector<PathPart> path_of(std::span<const Wait> chain, const LimitLog& limits,
                              const Topology& topology);

}  // namespace reshard::sim
