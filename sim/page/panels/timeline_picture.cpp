// SPDX-License-Identifier: BSD-3-Clause
#include "sim/page/panels/panels.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/core.h>

#include "core/base/units.h"
#include "core/layout/mesh.h"
#include "sim/page/page.h"
#include "sim/page/panels/time_axis.h"
#include "sim/page/panels/timeline_lanes.h"
#include "sim/report/time_tables.h"

namespace reshard::sim {

namespace {

constexpr LaneLimits kLimits = {.ranks_apart = 32, .lanes = 32, .slices = 5000};
constexpr double kLaneTop = 8, kLaneBottom = 28, kLaneGap = 4;
constexpr double kLaneLetter = 6.6;  // maximum width of a label's letter
constexpr double kLeastHeight = 13;  // of a row with labels
// Kinds in the order of the legend. The style has a colour of the same name for each.
constexpr std::array<std::string_view, 11> kKinds = {
    "all_gather", "reduce_scatter", "all_reduce", "all_to_all", "exchange", "message",
    "copy",       "reduce",         "fill",       "compute",    "setup"};

struct LanesDrawing {
  const TimelineFacts& facts;
  TimeScale scale;
  double row_height;
  Node labels;

  std::string name(const LaneSlice& slice) const;
  std::string tip(const LaneSlice& slice) const;
  void slice(Node lane, const LaneSlice& slice, double y) const;
};

// "3 all_gather" for a plan alone, "wq.weight: all_gather" for a plan among operations.
std::string LanesDrawing::name(const LaneSlice& slice) const {
  if (slice.parts > 1) return fmt::format("{} parts", slice.parts);
  if (slice.step >= 0 && facts.labels.empty()) return fmt::format("{} {}", slice.step, slice.kind);
  return part_name(facts.workload, facts.labels, slice.op, slice.step);
}

std::string LanesDrawing::tip(const LaneSlice& slice) const {
  std::string when =
      fmt::format("{} to {}, {}", duration_text(slice.start_ps), duration_text(slice.end_ps),
                  duration_text(slice.end_ps - slice.start_ps));
  if (slice.parts > 1)
    return fmt::format("{} parts of {} kind\n{}", slice.parts,
                       slice.kind == kSeveralKinds ? "several" : slice.kind, when);
  std::string name = part_name(facts.workload, facts.labels, slice.op, slice.step);
  return slice.step < 0 ? fmt::format("{}\n{}", name, when)
                        : fmt::format("{}, step {}\n{}", name, slice.step, when);
}

void LanesDrawing::slice(Node lane, const LaneSlice& slice, double y) const {
  double x = scale.x(slice.start_ps), width = scale.x(slice.end_ps) - x;
  // Slices that are wide enough have an outline, which separates them from their neighbours.
  Node rect = add(lane, "rect",
                  {{"class", fmt::format("k-{}{}", slice.kind, width > 4 ? " lined" : "")},
                   {"x", x - scale.left},
                   {"y", y},
                   {"width", std::max(width, 0.3)},
                   {"height", row_height}});
  add_tip(rect, tip(slice));
  if (row_height < kLeastHeight) return;
  // The longest label that fits.
  for (const std::string& label : {name(slice), std::string(slice.kind)}) {
    if (kLaneLetter * static_cast<double>(label.size()) + 6 > width) continue;
    add(labels, "text",
        {{"class", fmt::format("on-{}", slice.kind)}, {"x", x + 4}, {"y", y + row_height / 2 + 4}},
        label);
    return;
  }
}

// A nested coordinate system, so that zooming only changes its viewBox.
Node add_plot(Node svg, const TimeScale& scale, double bottom) {
  std::string view =
      fmt::format("0 0 {} {}", coordinate_text(scale.width), coordinate_text(bottom));
  return add(svg, "svg",
             {{"class", "plot"},
              {"x", scale.left},
              {"y", 0},
              {"width", scale.width},
              {"height", bottom},
              {"viewBox", view},
              {"preserveAspectRatio", "none"}});
}

void draw_legend(Node panel, const Lanes& lanes) {
  Legend legend(panel);
  auto is_shown = [&](std::string_view kind) {
    for (const Lane& lane : lanes.lanes)
      for (const std::vector<LaneSlice>& row : lane.rows)
        for (const LaneSlice& slice : row)
          if (slice.kind == kind) return true;
    return false;
  };
  auto add_kind = [&](std::string_view kind, std::string_view name) {
    if (is_shown(kind)) legend.add_entry(fmt::format("k-{}", kind), name);
  };
  for (std::string_view kind : kKinds) add_kind(kind, kind);
  add_kind(kSeveralKinds, "several kinds, too short to tell apart");
}

void note_omissions(Node panel, const Lanes& lanes) {
  std::string notes;
  if (lanes.all_lanes == 1 && lanes.ranks > 1)
    notes += fmt::format("All {} ranks do the same at the same times. ", lanes.ranks);
  else if (lanes.all_lanes < lanes.ranks)
    notes += fmt::format(
        "{} ranks do {} different things; those that do the same at the same times "
        "share a lane. ",
        lanes.ranks, lanes.all_lanes);
  if (lanes.lanes.size() < lanes.all_lanes)
    notes += fmt::format(
        "Of {} lanes {} are shown, evenly spread, among them the one that ends "
        "last. ",
        lanes.all_lanes, lanes.lanes.size());
  if (lanes.crowded)
    notes += fmt::format("More than {} parts at a time overlap in the last row of their lane. ",
                         Lane::kMostRows);
  if (lanes.together_ps > 0)
    notes += fmt::format("Neighbours that together last less than {} are drawn as one slice. ",
                         duration_text(lanes.together_ps));
  if (notes.empty()) return;
  notes.pop_back();
  add(panel, "p", {{"class", "aside"}}, notes);
}

}  // namespace

void draw_timeline(Node panel, const TimelineFacts& facts) {
  Lanes lanes = lanes_of(facts.timeline, kLimits, [&](const Span& span) {
    return part_kind(facts.workload, span.op, span.step);
  });
  if (lanes.lanes.empty()) return;
  std::size_t rows = 0;
  for (const Lane& lane : lanes.lanes) rows += lane.rows.size();
  double row_height = rows <= 16 ? 22 : rows <= 40 ? 15 : 9;
  bool has_path = facts.path != nullptr && !facts.path->parts.empty();
  double y = kLaneTop + (has_path ? kPathStripHeight + 2 * kLaneGap : 0);
  double bottom = y + static_cast<double>(rows) * row_height +
                  static_cast<double>(lanes.lanes.size()) * kLaneGap;
  TimeScale scale = time_scale(facts.timeline.end_ps);

  Node svg = add_chart(panel, kTimeWidth, bottom + kLaneBottom, "what each rank does over time");
  svg.attribute("class") = "chart timeline";
  svg.append_attribute("data-end") = std::to_string(facts.timeline.end_ps).c_str();
  draw_time_axis(svg, scale, kLaneTop, bottom);
  Node names = add(svg, "g", {{"class", "names"}});
  Node plot = add_plot(svg, scale, bottom);
  if (has_path) {
    add(names, "text", {{"class", "faint"}, {"x", scale.left - 8}, {"y", kLaneTop + 11}},
        "waits for");
    draw_path_strip(plot, scale, kLaneTop, *facts.path);
  }
  LanesDrawing drawing{facts, scale, row_height, add(svg, "g", {{"class", "labels"}})};
  for (const Lane& lane : lanes.lanes) {
    double lane_height = row_height * static_cast<double>(lane.rows.size());
    add_tip(add(names, "text", {{"x", scale.left - 8}, {"y", y + lane_height / 2 + 4}},
                ranks_name(lane.ranks)),
            "ranks " + ranks_text(lane.ranks));
    Node group = add(plot, "g", {{"class", "lane"}});
    for (const std::vector<LaneSlice>& row : lane.rows) {
      for (const LaneSlice& slice : row) drawing.slice(group, slice, y);
      y += row_height;
    }
    y += kLaneGap;
  }
  draw_legend(panel, lanes);
  if (has_path) {
    Legend waits(panel);
    waits.add_words("waits for:");
    for (const CauseShare& share : shares_of(*facts.path))
      waits.add_entry(share.colour, share.name);
  }
  note_omissions(panel, lanes);
}

}  // namespace reshard::sim
