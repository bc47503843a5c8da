// SPDX-License-Identifier: BSD-3-Clause
#include "sim/page/panels/panels.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "core/base/units.h"
#include "sim/page/page.h"
#include "sim/report/facts.h"
#include "sim/report/time_tables.h"

namespace reshard::sim {

namespace {

constexpr std::size_t kMostSteps = 24, kMostMeasured = 500;
constexpr double kMeasuredRight = 196, kMeasuredBar = 11, kMeasuredGap = 10, kMeasuredTop = 4;

struct Pair {
  std::string name;
  std::int64_t predicted_ps;
  Spread measured;
};

// The steps with both times, and last the whole plan.
std::vector<Pair> pairs_of(const ValidateReport& report) {
  std::vector<Pair> out;
  const RunReport& predicted = report.predicted;
  for (std::size_t s = 0; s < predicted.steps.size(); ++s)
    if (std::optional<std::int64_t> ps = predicted.steps[s].duration_ps();
        ps && report.measured.steps[s])
      out.push_back(
          {fmt::format("{} {}", s, predicted.steps[s].kind), *ps, *report.measured.steps[s]});
  out.push_back({"all", predicted.time_ps, report.measured.total});
  return out;
}

// Pixels per picosecond. `shares`: the two differ, so that bars only compare shares of the whole.
struct Scales {
  double predicted, measured;
  bool shares;
};

Scales scales_of(const ValidateReport& report, const std::vector<Pair>& pairs) {
  double width = kPanelWidth - kPanelLeft - kMeasuredRight;
  auto over = [&](std::int64_t ps) {
    return width / static_cast<double>(std::max<std::int64_t>(ps, 1));
  };
  std::int64_t predicted = 0, measured = 0;
  for (const Pair& pair : pairs) {
    predicted = std::max(predicted, pair.predicted_ps);
    measured = std::max(measured, pair.measured.median_ps);
  }
  if (!report.models_this_machine) return {over(predicted), over(measured), true};
  return {over(std::max(predicted, measured)), over(std::max(predicted, measured)), false};
}

// Whether the slowest run is beyond the right edge; its line then ends in an arrow. Scaling to such
// a run would squeeze all other bars.
bool goes_on(const Pair& pair, const Scales& scales) {
  return scales.measured * static_cast<double>(pair.measured.max_ps) >
         kPanelWidth - kPanelLeft - kMeasuredRight + 1;
}

void draw_pair(Node svg, const Pair& pair, const Scales& scales, double y) {
  add(add(svg, "g", {{"class", "names"}}), "text",
      {{"x", kPanelLeft - 8}, {"y", y + kMeasuredBar + 4}}, pair.name);
  double predicted = scales.predicted * static_cast<double>(pair.predicted_ps);
  double median = scales.measured * static_cast<double>(pair.measured.median_ps);
  auto bar = [&](const char* colour, double top, double width, const std::string& tip) {
    add_tip(add(svg, "rect",
                {{"class", colour},
                 {"x", kPanelLeft},
                 {"y", top},
                 {"width", width},
                 {"height", kMeasuredBar}}),
            tip);
  };
  bar("predicted", y, predicted, "predicted " + duration_text(pair.predicted_ps));
  bar("measured", y + kMeasuredBar, median,
      fmt::format("measured {}, from {} to {}", duration_text(pair.measured.median_ps),
                  duration_text(pair.measured.min_ps), duration_text(pair.measured.max_ps)));
  double least = kPanelLeft + scales.measured * static_cast<double>(pair.measured.min_ps);
  double right = kPanelWidth - kMeasuredRight;
  double most =
      std::min(right, kPanelLeft + scales.measured * static_cast<double>(pair.measured.max_ps));
  add(svg, "line",
      {{"class", "spread"},
       {"x1", least},
       {"x2", most},
       {"y1", y + 1.5 * kMeasuredBar},
       {"y2", y + 1.5 * kMeasuredBar}});
  if (goes_on(pair, scales))
    add(svg, "path",
        {{"class", "spread"},
         {"fill", "none"},
         {"d", fmt::format("M{} {}l5 3.5l-5 3.5", coordinate_text(right - 5),
                           coordinate_text(y + 1.5 * kMeasuredBar - 3.5))}});
  add(svg, "text",
      {{"class", "value"},
       {"x", std::max(kPanelLeft + predicted, most) + 8},
       {"y", y + kMeasuredBar + 4}},
      fmt::format("{} / {}", duration_text(pair.predicted_ps),
                  duration_text(pair.measured.median_ps)));
}

void list_pairs(Node panel, const std::vector<Pair>& pairs) {
  std::size_t shown = std::min(kMostMeasured, pairs.size());
  HtmlTable table(panel,
                  fmt::format("{} of {} rows; the last is the whole plan", shown, pairs.size()),
                  {"step", ">predicted", ">measured, median", ">least", ">most", ">ratio"});
  for (std::size_t i = 0; i < shown; ++i) {
    const Pair& pair = pairs[i];
    table.add_row({pair.name, Cell::time(pair.predicted_ps), Cell::time(pair.measured.median_ps),
                   Cell::time(pair.measured.min_ps), Cell::time(pair.measured.max_ps),
                   Cell::ratio(ratio_e4(pair.measured.median_ps, pair.predicted_ps))});
  }
}

}  // namespace

void draw_measured(Node panel, const ValidateReport& report) {
  std::vector<Pair> pairs = pairs_of(report), shown = pairs;
  if (shown.size() > kMostSteps) {
    std::stable_sort(shown.begin(), shown.end(), [](const Pair& a, const Pair& b) {
      return a.measured.median_ps > b.measured.median_ps;
    });
    shown.resize(kMostSteps);
  }
  Scales scales = scales_of(report, pairs);
  constexpr double kEach = 2 * kMeasuredBar + kMeasuredGap;
  Node svg = add_chart(panel, kPanelWidth, kMeasuredTop + static_cast<double>(shown.size()) * kEach,
                       "predicted and measured time of each step");
  for (std::size_t i = 0; i < shown.size(); ++i)
    draw_pair(svg, shown[i], scales, kMeasuredTop + static_cast<double>(i) * kEach);
  Legend legend(panel);
  legend.add_entry("predicted", "predicted");
  legend.add_entry("measured", "measured: the median; the line spans minimum to maximum");
  if (std::any_of(shown.begin(), shown.end(),
                  [&](const Pair& pair) { return goes_on(pair, scales); }))
    legend.add_words("arrow: extends beyond the drawing");
  if (scales.shares)
    add(panel, "p", {{"class", "aside"}},
        fmt::format("The prediction is for {}, not for the machine that ran the plan: each bar is "
                    "relative to the longest of its colour.",
                    report.predicted.topology));
  if (shown.size() < pairs.size())
    add(panel, "p", {{"class", "aside"}},
        fmt::format("The {} longest of {} are drawn.", shown.size(), pairs.size()));
  list_pairs(panel, pairs);
}

}  // namespace reshard::sim
