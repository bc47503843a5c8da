// SPDX-License-Identifier: BSD-3-Clause
// Each link's rate over the time of a run, for charts.
//
// Records *knots*: the instants at which a link's rate changed, with the work done by then. The
// mean rate between two knots is their difference in work divided by that in time; it is the exact
// rate unless knots in between were dropped. A link with too many knots keeps only the first of
// each cell of a time grid, and the cell width doubles until the knots fit. Because knots hold work
// and not rates, the area under the rate still equals the link's bytes.
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
  // The most knots per link. On topologies with more than 2^12 links the limit falls in proportion,
  // down to 8.
  static constexpr std::size_t kMostKnots = 1024;
  explicit LinkRates(std::int32_t resource_count);

  // In the format of Timeline::work.
  const std::vector<WorkDone>& knots(ResourceId link) const { return links_[link].knots; }
  std::vector<std::vector<WorkDone>> take();

  void solved(std::int64_t now_ps, const FairShare& shares,
              const FairShare::Changes& changes) override;
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
