// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/replay_facts.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/units.h"

namespace reshard::sim {

std::string proof_text(const ReplayReport& report) {
  if (report.requests.empty()) return "no redistributions";
  auto count = static_cast<std::int64_t>(report.requests.size());
  return fmt::format("{}, at full size, from index sets", counted(count, "redistribution"));
}

std::string data_text(const ReplayReport& report) {
  if (report.data_checked == 0)
    return report.requests.empty() ? "no redistributions" : "no bytes moved (--data proof)";
  std::string full = "all at full size";
  if (report.data_full_size < report.data_checked)
    full = fmt::format("{} at full size and {}, above the data budget, at a reduced one",
                       report.data_full_size, report.data_checked - report.data_full_size);
  return fmt::format("{} of {} different requests, {}, {} elements compared", report.data_checked,
                     report.different_requests, full, report.elements_checked);
}

std::string faults_text(const ReplayReport& report) {
  if (!report.fault_cost) return {};
  constexpr std::size_t kShown = 4;
  std::int64_t without = report.fault_cost->without_ps, cost = report.time_ps - without;
  std::string out =
      fmt::format("{} {} than without them, {}", duration_text(cost < 0 ? -cost : cost),
                  cost < 0 ? "less" : "more", duration_text(without));
  std::size_t shown = 0;
  for (const Grown& grown : report.fault_cost->grown) {
    if (shown == kShown) break;
    out += fmt::format("{}line {} ({} longer)", shown == 0 ? "; most of it at " : ", ",
                       report.lines[to_index(grown.op)], duration_text(grown.ps));
    ++shown;
  }
  return out;
}

std::string late_text(const ReplayReport& report) {
  if (report.late.empty()) return {};
  const LateArrival& late = report.late.front();
  std::string more =
      report.late.size() == 1 ? "" : fmt::format(" (and {} more)", report.late.size() - 1);
  return fmt::format("rank {}, {} behind all others at line {}; together they waited {}{}",
                     to_int(late.rank), duration_text(late.late_ps),
                     report.lines[to_index(late.op)], duration_text(late.waited_ps), more);
}

std::vector<Delayed> delayed_by_gain(const ReplayReport& report) {
  if (!report.reordered) return {};
  std::vector<Delayed> list = report.reordered->delayed;
  std::stable_sort(list.begin(), list.end(),
                   [](const Delayed& a, const Delayed& b) { return a.gain_ps > b.gain_ps; });
  std::erase_if(list, [](const Delayed& pair) { return pair.gain_ps <= 0; });
  return list;
}

}  // namespace reshard::sim
