// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/request_kinds.h"

#include <map>
#include <string>
#include <utility>

namespace reshard::sim {

std::vector<RequestKind> kinds_of(const std::vector<ReplayRow>& rows) {
  std::vector<RequestKind> kinds;
  std::map<std::pair<std::string, std::string>, std::size_t> index;
  for (const ReplayRow& row : rows) {
    auto [at, added] = index.try_emplace({row.text, row.planner}, kinds.size());
    if (added) kinds.push_back({&row});
    RequestKind& kind = kinds[at->second];
    ++kind.count;
    kind.bytes += row.bytes_received;
    if (row.start_ps && row.end_ps) kind.time_ps += *row.end_ps - *row.start_ps;
  }
  return kinds;
}

}  // namespace reshard::sim
