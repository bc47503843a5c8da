// SPDX-License-Identifier: BSD-3-Clause
#include "sim/network/shortcuts/least_end.h"

#include <algorithm>

#include "core/base/limits.h"
#include "sim/sharing/flow_groups.h"

namespace reshard::sim {
namespace {

// How often a run is examined before the limit. Each time, all flows and all used links are
// visited.
constexpr std::int64_t kLooks = 64;

}  // namespace

LeastEnd::LeastEnd(const Topology& topology, std::int64_t limit_ps)
    : topology_(topology),
      limit_ps_(limit_ps),
      interval_ps_(std::max<std::int64_t>(1, limit_ps / kLooks)),
      next_ps_(interval_ps_) {}

void LeastEnd::count(const OperationRun& run) {
  counted_ = true;
  bytes_.resize(to_index(topology_.resource_count()), 0);
  work_.resize(bytes_.size(), 0);
  run.for_each_message([&](Rank source, Rank destination, std::int64_t bytes) {
    for (const Hop& hop : topology_.rule(source, destination).hops) {
      const ResourceId resource = topology_.resource(hop, source, destination);
      if (bytes_[resource] == 0 && bytes > 0) used_.push_back(resource);
      bytes_[resource] += bytes;
    }
  });
}

std::int64_t LeastEnd::at(std::int64_t now_ps, const OperationRun& run, const Flows& flows) {
  next_ps_ = now_ps + interval_ps_;
  if (!counted_) count(run);
  std::fill(work_.begin(), work_.end(), 0);
  flows.add_work_left(now_ps, work_);
  Int128 least_ps = 0;
  const Int128 too_long_ps = Int128{limit_ps_} - now_ps + 1;
  for (ResourceId resource : used_) {
    const Int128 to_come = bytes_[resource] - flows.uses()[to_index(resource)].bytes;
    const Int128 work = work_[resource] + std::max<Int128>(0, to_come) * kUnitsPerByte;
    const std::int64_t rate = topology_.resource_bytes_per_s(resource);
    if (work >= too_long_ps * rate) least_ps = std::max(least_ps, work / rate);
  }
  return now_ps + static_cast<std::int64_t>(std::min<Int128>(least_ps, kMaxTimePs - now_ps));
}

}  // namespace reshard::sim
