// SPDX-License-Identifier: BSD-3-Clause
// Records what limited the rate of every transfer of a run, and since when. The critical path is
// known only at the end of a run, so all transfers are recorded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/ids.h"
#include "sim/network/flow_observer.h"
#include "sim/network/wait_log.h"

namespace reshard::sim {

class LimitLog : public FlowObserver {
 public:
  // Beyond this many changes (1 GB) nothing more is recorded.
  static constexpr std::size_t kMaxChanges = std::size_t{1} << 26;

  struct Limit {
    std::int64_t since_ps;
    std::optional<ResourceId> resource;  // none: the flow's rate cap
  };

  void begun(std::int32_t flow) override;
  void held(std::int32_t flow, std::optional<ResourceId> by) override;
  void solved(std::int64_t now_ps, const FairShare& shares,
              const FairShare::Changes& changes) override;

  bool full() const { return full_; }
  // By wait of the chain, ascending in time; empty for computes.
  std::vector<std::vector<Limit>> limits_of(std::span<const Wait> chain) const;

 private:
  static constexpr std::int32_t kCap = -1, kUnknown = -2;  // in place of a resource

  struct Flow {
    std::int32_t transfer = -1, limit = kUnknown;
    std::optional<ResourceId> held_by = {};
  };
  struct Change {
    std::int32_t transfer, limit;
    std::int64_t since_ps;
  };

  void set(std::int32_t flow, std::optional<ResourceId> limit, std::int64_t now_ps);

  IndexVector<std::int32_t, Flow> flows_;
  std::vector<std::int32_t> newly_held_;
  std::vector<Change> changes_;  // in order of time
  std::int32_t transfers_ = 0;
  bool full_ = false;
};

}  // namespace reshard::sim
