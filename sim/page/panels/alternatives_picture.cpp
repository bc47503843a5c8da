// SPDX-License-Identifier: BSD-3-Clause
#include "sim/page/panels/panels.h"

#include <algorithm>
#include <string>

#include <fmt/core.h>

#include "core/base/units.h"
#include "sim/page/page.h"
#include "sim/report/facts.h"
#include "sim/report/ratios.h"

namespace reshard::sim {

namespace {

using Alternative = Explanation::Alternative;

constexpr double kPlanRight = 112, kPlanBar = 20, kPlanGap = 6, kPlanTop = 22;

// The compared time; with --cold it includes first use, which is 0 otherwise.
std::int64_t total_ps(const Alternative& alternative) {
  return alternative.time_ps.value_or(0) + alternative.first_use_ps;
}

std::string why_not(const Alternative& own, const Alternative& taken) {
  if (own.taken) return "taken";
  if (!own.refusal.empty()) return own.refusal;
  if (!own.time_ps) return "needs more memory than the limit";
  if (total_ps(own) > total_ps(taken))
    return ratio_of(total_ps(own), total_ps(taken)) + " times as long";
  return own.peak_bytes > taken.peak_bytes ? "as fast, but needs more memory"
                                           : "equal; the first one is taken";
}

void draw_bars(Node panel, const std::vector<const Alternative*>& timed, std::int64_t bound_ps) {
  std::int64_t longest = 1;
  for (const Alternative* each : timed) longest = std::max(longest, total_ps(*each));
  double per_ps = (kPanelWidth - kPanelLeft - kPlanRight) / static_cast<double>(longest);
  double height = kPlanTop + static_cast<double>(timed.size()) * (kPlanBar + kPlanGap);
  Node svg = add_chart(panel, kPanelWidth, height, "the time of each planner's plan");
  Node names = add(svg, "g", {{"class", "names"}});
  double y = kPlanTop;
  for (const Alternative* each : timed) {
    double width = per_ps * static_cast<double>(total_ps(*each));
    add(names, "text", {{"x", kPanelLeft - 8}, {"y", y + 14}}, each->planner);
    Node bar = add(svg, "rect",
                   {{"class", each->taken ? "taken" : "other"},
                    {"x", kPanelLeft},
                    {"y", y},
                    {"width", width},
                    {"height", kPlanBar}});
    add_tip(bar, fmt::format("{}: {}, peak {}", each->planner, duration_text(total_ps(*each)),
                             bytes_text(each->peak_bytes)));
    add(svg, "text", {{"class", "value"}, {"x", kPanelLeft + width + 8}, {"y", y + 14}},
        duration_text(total_ps(*each)));
    y += kPlanBar + kPlanGap;
  }
  if (bound_ps == 0) return;
  double x = kPanelLeft + per_ps * static_cast<double>(bound_ps);
  add(svg, "line",
      {{"class", "bound"},
       {"x1", x},
       {"x2", x},
       {"y1", kPlanTop - 6},
       {"y2", height - kPlanGap + 2}});
  add(svg, "text", {{"class", "faint"}, {"x", x}, {"y", 11}, {"text-anchor", "middle"}},
      "bound " + duration_text(bound_ps));
}

}  // namespace

void draw_alternatives(Node panel, const std::vector<Alternative>& alternatives,
                       std::int64_t bound_ps) {
  auto taken = std::find_if(alternatives.begin(), alternatives.end(),
                            [](const Alternative& each) { return each.taken; });
  if (taken == alternatives.end()) return;
  std::vector<const Alternative*> timed;
  for (const Alternative& each : alternatives)
    if (each.time_ps) timed.push_back(&each);
  draw_bars(panel, timed, bound_ps);
  HtmlTable table(panel, "Every planner, and why its plan was not taken",
                  {"planner", ">time", ">ratio to bound", ">peak memory", "why not"});
  for (const Alternative& each : alternatives) {
    bool planned = each.refusal.empty();
    Node row =
        table.add_row({each.planner, each.time_ps ? Cell::time(total_ps(each)) : Cell("-"),
                       each.time_ps ? Cell::ratio(ratio_e4(total_ps(each), bound_ps)) : Cell("-"),
                       planned ? Cell::bytes(each.peak_bytes) : Cell("-"), why_not(each, *taken)});
    if (each.taken) row.append_attribute("class") = "taken";
  }
}

}  // namespace reshard::sim
