// SPDX-License-Identifier: BSD-3-Clause
#include "sim/study/link_rates.h"

#include <algorithm>
#include <utility>

namespace reshard::sim {

LinkRates::LinkRates(std::int32_t resource_count)
    : most_knots_(std::clamp<std::size_t>(
          (kMostKnots << 12) / to_index(std::max(resource_count, 1)), 8, kMostKnots)),
      links_(to_index(resource_count)) {}

// The latest knot is always present. Once a later one arrives it is kept only if it is the first of
// its cell.
void LinkRates::keep(Link& link, std::int64_t now_ps) const {
  std::vector<WorkDone>& knots = link.knots;
  auto same_cell = [&](const WorkDone& a, const WorkDone& b) {
    return a.time_ps / link.cell_ps == b.time_ps / link.cell_ps;
  };
  if (knots.size() >= 2 && same_cell(knots[knots.size() - 2], knots.back())) knots.pop_back();
  knots.push_back({now_ps, link.work});
  while (knots.size() >= most_knots_) {
    link.cell_ps *= 2;
    WorkDone last = knots.back();
    knots.erase(std::unique(knots.begin(), knots.end(), same_cell), knots.end());
    if (knots.back().time_ps != last.time_ps) knots.push_back(last);
  }
}

void LinkRates::change(Link& link, std::int64_t now_ps, std::int64_t rate, Int128 excess) const {
  link.work += Int128{link.rate} * (now_ps - link.since_ps) - excess;
  link.rate = rate;
  link.since_ps = now_ps;
  if (link.knots.empty() || link.knots.back().time_ps < now_ps)
    keep(link, now_ps);
  else
    link.knots.back().work = link.work;
}

void LinkRates::solved(std::int64_t now_ps, const FairShare& shares,
                       const FairShare::Changes& changes) {
  for (ResourceId link : changes.resources)
    if (shares.used(link) != links_[link].rate) change(links_[link], now_ps, shares.used(link), 0);
}

void LinkRates::finished(std::int64_t now_ps, const FairShare& shares, std::int32_t flow,
                         Int128 excess) {
  for (ResourceId link : shares.path(flow)) change(links_[link], now_ps, shares.used(link), excess);
}

std::vector<std::vector<WorkDone>> LinkRates::take() {
  std::vector<std::vector<WorkDone>> out;
  for (Link& link : links_) out.push_back(std::move(link.knots));
  return out;
}

}  // namespace reshard::sim
