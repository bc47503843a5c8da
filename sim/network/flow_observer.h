// SPDX-License-Identifier: BSD-3-Clause
// Interface for observing the flows of a run. It does not affect the run.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/integers.h"
#include "sim/sharing/fair_share.h"

namespace reshard::sim {

class FlowObserver {
 public:
  virtual ~FlowObserver() = default;
  // A transfer begins, with its latency. Numbers of flows that have ended are reused.
  virtual void begun(std::int32_t /*flow*/) {}
  // The flow waits because this link on its route is down; none: it shares again.
  virtual void held(std::int32_t /*flow*/, std::optional<ResourceId> /*by*/) {}
  // New rates apply from now on.
  virtual void solved(std::int64_t /*now_ps*/, const FairShare& /*shares*/,
                      const FairShare::Changes& /*changes*/) {}
  // The flow stops sharing, or starts again with its remaining work; its path is still available.
  // `excess` is what its rate carries beyond its bytes, in 10^-12 byte, since it ends at a whole
  // picosecond.
  virtual void finished(std::int64_t /*now_ps*/, const FairShare& /*shares*/, std::int32_t /*flow*/,
                        Int128 /*excess*/) {}
};

}  // namespace reshard::sim
