// SPDX-License-Identifier: BSD-3-Clause
// What each link carried at each time of a run, for those who draw it.
//
// Kept are *knots*: instants at which a link's rate changed, with the work done by then. Between
// two knots the mean rate is their difference of work over that of time, which is the rate itself
// where none was left out. A link of too many knots keeps the first of each cell of a grid, the
// cells twice as wide whenever that is not enough; since knots hold work and not rates, the area
// under the rate stays the link's bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/ids.h"
#include "core/base/integers.h"
#include "core/plan/executor.h"
#include "sim/network/flow_observer.h"

namespace reshard::sim {

class LinkRates : public FlowObserver {
 public:
  // At most this many knots of a link, but on topologies of more than 2^12 links as many less as
  // they are more, down to 8.
  static constexpr std::size_t kMostKnots = 1024;
  explicit LinkRates(std::int32_t resource_count);

  // As Timeline::work.
  const std::vector<WorkDone>& knots(ResourceId link) const { return links_[link].knots; }
  std::vector<std::vector<WorkDone>> take();

  void solved(std::int64_t now_ps, const FairShare& shares,
              std::span<const ResourceId> changed) override;
  void finished(std::int64_t now_ps, const FairShare& shares, std::int32_t flow,
                Int128 excess) override;

 private:
  struct Link {
    std::int64_t rate = 0, since_ps = 0;
    Int128 work = 0;
    std::int64_t cell_ps = 1;
    std::vector<WorkDone> knots;
  };
  void change(Link& link, std::int64_t now_ps, std::int64_t rate, Int128 excess) const;
  void keep(Link& link, std::int64_t now_ps) const;

  std::size_t most_knots_;
  IndexVector<ResourceId, Link> links_;
};

}  // namespace reshard::sim
