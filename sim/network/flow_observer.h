// SPDX-License-Identifier: BSD-3-Clause
// Told what the flows of a run do, where someone asks. A run is the same with and without.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/base/integers.h"
#include "sim/sharing/fair_share.h"

namespace reshard::sim {

class FlowObserver {
 public:
  virtual ~FlowObserver() = default;
  // A transfer begins, with its latency; the numbers of flows that are over are used again.
  virtual void begun(std::int32_t /*flow*/) {}
  // A link on its way is down, this one; none: it shares again.
  virtual void held(std::int32_t /*flow*/, std::optional<ResourceId> /*by*/) {}
  // The rates from now on; the resources whose flows may have new ones, some of them twice.
  virtual void solved(std::int64_t /*now_ps*/, const FairShare& /*shares*/,
                      std::span<const ResourceId> /*changed*/) {}
  // The flow shares no more, or begins anew with what is left; its path is still there. `excess`:
  // what its rate would carry of bytes that it does not have, in 10^-12 byte, since it ends at a
  // whole picosecond.
  virtual void finished(std::int64_t /*now_ps*/, const FairShare& /*shares*/, std::int32_t /*flow*/,
                        Int128 /*excess*/) {}
};

}  // namespace reshard::sim
