// SPDX-License-Identifier: BSD-3-Clause
// What makes a plan slower than its bound: of the factors between the two the greatest.
//
//   links not full  the time over what its busiest resource would need for its bytes at full rate:
//                   steps that wait for each other, latencies, what the transport costs
//   few             that need over the average of all resources of its kind: a few ranks do what
//                   many could
//   nodes entered   where that kind lies between nodes: what enters nodes over what must
//   received        elsewhere: what ranks receive over what they must
//   only            the rest: other kinds could have carried more
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/bounds/bounds.h"
#include "core/plan/executor.h"

namespace reshard::sim {

struct LostTime {
  enum class By : std::uint8_t { Nothing, NotFull, Few, Entered, Received, Only } by = By::Nothing;
  std::string kind;  // of the busiest resource: "nic.out"
  // In 1/10,000; none: infinite, what was done needed not be done.
  std::optional<std::int64_t> factor_e4 = 0;
};
// "few nic.out 2.00 x", "nodes entered without need"; "-" where less than a twentieth is lost.
std::string text(const LostTime& lost);

// Of a plan's timeline that knows its resources and routes, and what `sets` must bring in.
LostTime lost_time(const Timeline& timeline, const CutSets& sets, const RequestDemand& demand,
                   Int128 received_bytes);

}  // namespace reshard::sim
