// SPDX-License-Identifier: BSD-3-Clause
#include "sim/page/cause_colours.h"

#include <algorithm>

#include <fmt/format.h>

namespace reshard::sim {

namespace {

// As many as there are colours that everybody tells apart, less that of the others.
constexpr std::size_t kCausesShown = 6;
constexpr const char* kOthers = "rest";

}  // namespace

std::vector<CauseShare> shares_of(const PathFacts& path) {
  std::vector<CauseShare> out;
  std::size_t shown = std::min(kCausesShown, path.causes.size());
  int colours = 0;
  for (std::size_t i = 0; i < shown; ++i) {
    const PathFacts::Cause& cause = path.causes[i];
    std::string own = cause.name == "compute" ? "k-compute" : fmt::format("c{}", colours++);
    out.push_back({cause.name, own, cause.time_ps});
  }
  if (shown == path.causes.size()) return out;
  CauseShare others{fmt::format("{} others", path.causes.size() - shown), kOthers, 0};
  for (std::size_t i = shown; i < path.causes.size(); ++i) others.time_ps += path.causes[i].time_ps;
  out.push_back(others);
  return out;
}

std::string colour_of(const std::vector<CauseShare>& shares, const std::string& cause) {
  auto found = std::find_if(shares.begin(), shares.end(),
                            [&](const CauseShare& share) { return share.name == cause; });
  return found == shares.end() ? kOthers : found->colour;
}

}  // namespace reshard::sim
