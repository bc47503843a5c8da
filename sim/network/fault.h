// SPDX-License-Identifier: BSD-3-Clause
// Faults of links and ranks while a workload runs.
#pragma once

#include <cstdint>

#include "core/base/errors.h"
#include "core/base/ids.h"

namespace reshard::sim {

// Applies from `from_ps` on; a later fault of the same kind and place replaces it.
struct Fault {
  enum class Kind : std::uint8_t {
    LinkShare,    // the resource has `amount` millionths of its capacity; 0: nothing crosses it
    LinkLatency,  // routes that cross the resource have `amount` ps more latency
    RankLatency,  // the same for routes from and to the rank
    RankShare     // the rank computes at `amount` millionths of its rate, at least 1
  } kind;
  std::int64_t from_ps, amount;
  ResourceId resource{0};
  Rank rank{0};
};

// The run cannot end because a transfer waits for a link that is down.
struct TransferStopped : InputError {
  TransferStopped(OpId of, ResourceId at, const std::string& what)
      : InputError(what), operation(of), resource(at) {}
  OpId operation;
  ResourceId resource;
};

}  // namespace reshard::sim
