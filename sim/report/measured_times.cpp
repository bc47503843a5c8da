// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/measured_times.h"

#include <algorithm>
#include <limits>

#include "core/base/errors.h"

namespace reshard::sim {

namespace {

struct Extent {
  std::int64_t start_ps = std::numeric_limits<std::int64_t>::max(), end_ps = -1;
  bool any() const { return end_ps >= 0; }
};

std::vector<Extent> extents_of(const Timeline& run, std::size_t step_count) {
  std::vector<Extent> out(step_count);
  for (const Span& span : run.spans) {
    RESHARD_CHECK(span.step >= 0 && static_cast<std::size_t>(span.step) < step_count &&
                      span.start_ps <= span.end_ps,
                  "a measured span of no step");
    Extent& extent = out[static_cast<std::size_t>(span.step)];
    extent.start_ps = std::min(extent.start_ps, span.start_ps);
    extent.end_ps = std::max(extent.end_ps, span.end_ps);
  }
  return out;
}

}  // namespace

Spread spread_of(std::vector<std::int64_t> values_ps) {
  RESHARD_CHECK(!values_ps.empty(), "the median of nothing");
  std::sort(values_ps.begin(), values_ps.end());
  return {values_ps[(values_ps.size() - 1) / 2], values_ps.front(), values_ps.back()};
}

MeasuredTimes times_of(std::span<const Timeline> runs, std::size_t step_count) {
  MeasuredTimes out;
  std::vector<std::int64_t> totals;
  std::vector<std::vector<std::int64_t>> by_step(step_count);
  for (const Timeline& run : runs) {
    totals.push_back(run.end_ps);
    std::vector<Extent> extents = extents_of(run, step_count);
    for (std::size_t s = 0; s < step_count; ++s)
      if (extents[s].any()) by_step[s].push_back(extents[s].end_ps - extents[s].start_ps);
  }
  out.total = spread_of(totals);
  out.median_run = static_cast<std::size_t>(
      std::find(totals.begin(), totals.end(), out.total.median_ps) - totals.begin());
  for (std::vector<std::int64_t>& values : by_step)
    out.steps.push_back(values.empty() ? std::nullopt
                                       : std::optional(spread_of(std::move(values))));
  return out;
}

}  // namespace reshard::sim
