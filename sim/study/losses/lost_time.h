// SPDX-License-Identifier: BSD-3-Clause
// Why a plan is slower than its bound: the greatest of the factors between the two.
//
//   links not full  run time / the time its busiest resource needs for its bytes at full rate, or
//                   the bound if that is longer: steps wait for each other, latencies, transport
//                   costs
//   few             that time / the average over the job's resources of the same kind: a few ranks
//                   do the work of many
//   nodes entered   if that kind connects nodes: bytes that entered nodes / bytes that must
//   received        otherwise: bytes that ranks received / bytes that they must
//   only            the remainder: other kinds of resources could have carried more
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
  // In units of 1/10,000. None: infinite, because no bytes had to move at all.
  std::optional<std::int64_t> factor_e4 = 0;
};
// "few nic.out 2.00 x", "nodes entered without need"; "-" if less than 5 % above the bound.
std::string text(const LostTime& lost);

// `timeline` must have its resources and routes; `demand` is that of the plan's request on `sets`.
LostTime lost_time(const Timeline& timeline, const CutSets& sets, const RequestDemand& demand,
                   Int128 received_bytes);

}  // namespace reshard::sim
