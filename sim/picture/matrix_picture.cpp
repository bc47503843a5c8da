// SPDX-License-Identifier: BSD-3-Clause
#include "sim/picture/pictures.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/core.h>

#include "core/base/units.h"
#include "sim/picture/drawing.h"

namespace reshard::sim {
namespace {

constexpr std::size_t kMostLayouts = 64;
constexpr double kMargin = 20, kHead = 62, kLabel = 11;

// "1.04", "12.3", "123": as many digits as fit a cell.
std::string cell_text(std::int64_t ratio_e4) {
  int decimals = ratio_e4 < 99'950 ? 2 : ratio_e4 < 999'500 ? 1 : 0;
  return decimal_text(ratio_e4, 10'000, decimals);
}

class MatrixPicture {
 public:
  MatrixPicture(const SweepReport& report, std::string_view mesh, std::string_view planner)
      : mesh_(mesh), planner_(planner) {
    for (const SweepRow& row : report.rows)
      if (row.mesh == mesh && row.planner == planner) {
        number_layout(row.from);
        number_layout(row.to);
        rows_.emplace(std::pair(number_.at(row.from), number_.at(row.to)), &row);
      }
    for (const SweepSummary& summary : summarize(report))
      if (summary.mesh == mesh && summary.planner == planner) summary_ = summary;
    drawn_ = std::min(layouts_.size(), kMostLayouts);
    auto count = static_cast<double>(std::max<std::size_t>(1, drawn_));
    wide_ = std::clamp(std::floor(840 / count), 22.0, 64.0);
    high_ = std::min(wide_, 34.0);
    for (std::size_t i = 0; i < drawn_; ++i)
      labels_ = std::max(labels_, text_width(layouts_[i], kLabel) + 10);
  }

  void draw(Node parent) const {
    auto count = static_cast<double>(drawn_);
    double top = kHead + labels_, bottom = top + count * high_;
    double width = std::max(2 * kMargin + labels_ + count * wide_ + 10, 520.0);
    Node svg = add_picture(parent, width, bottom + 64, fmt::format("{} on {}", planner_, mesh_));
    add_heading(svg, kMargin, 26, 16, fmt::format("{} on {}", planner_, mesh_));
    add_text(svg, kMargin, 46, 12, summary_text(), "start", Tone::Soft);
    for (std::size_t i = 0; i < drawn_; ++i) draw_labels(svg, i, top);
    for (std::size_t from = 0; from < drawn_; ++from)
      for (std::size_t to = 0; to < drawn_; ++to)
        draw_cell(svg, from, to, x_of(to), top + static_cast<double>(from) * high_);
    draw_legend(svg, bottom + 28);
  }

 private:
  void number_layout(const std::string& layout) {
    if (number_.emplace(layout, layouts_.size()).second) layouts_.push_back(layout);
  }

  double x_of(std::size_t to) const { return kMargin + labels_ + static_cast<double>(to) * wide_; }

  std::string summary_text() const {
    std::string out = fmt::format("time over bound, from rows to columns; {} with a bound",
                                  counted(summary_.pairs, "pair"));
    if (summary_.geometric_mean_e4)
      out += fmt::format(", {} at the bound, mean {}", summary_.at_bound,
                         ratio_text(summary_.geometric_mean_e4));
    if (drawn_ < layouts_.size())
      out += fmt::format("; the first {} of {} layouts", drawn_, layouts_.size());
    return out;
  }

  void draw_labels(Node svg, std::size_t i, double top) const {
    double row = top + (static_cast<double>(i) + 0.5) * high_ + 4, column = x_of(i) + wide_ / 2 + 4;
    add_text(svg, kMargin + labels_ - 6, row, kLabel, layouts_[i], "end");
    Node text = add_text(svg, column, top - 6, kLabel, layouts_[i]);
    turn_upwards(text, column, top - 6);
  }

  void draw_cell(Node svg, std::size_t from, std::size_t to, double x, double y) const {
    auto found = rows_.find({from, to});
    if (found == rows_.end()) return;  // a pair that the sweep does not have
    const SweepRow& row = *found->second;
    Node cell = add(svg, "g", {{"class", "cell"}});
    add_tip(cell, tip(row));
    Node box = add_rectangle(cell, x + 0.5, y + 0.5, wide_ - 1, high_ - 1);
    double size = std::min(12.0, wide_ / 2.6);
    if (!row.time_ps || *row.time_ps == 0) {
      fill(box, Tone::Panel);
      add_text(cell, x + wide_ / 2, y + high_ / 2 + 0.36 * size, size, row.time_ps ? "=" : "no",
               "middle", Tone::Soft);
      return;
    }
    std::optional<std::int64_t> ratio = ratio_e4(*row.time_ps, row.bound_ps);
    Shade shade = heat_of(*row.time_ps - row.bound_ps, *row.time_ps);
    fill(box, shade);
    Node text = add(cell, "text",
                    {{"x", x + wide_ / 2},
                     {"y", y + high_ / 2 + 0.36 * size},
                     {"font-size", size},
                     {"text-anchor", "middle"}},
                    ratio ? cell_text(*ratio) : "inf");
    fill(text, Shade{ink_on(shade.day), ink_on(shade.night)});
  }

  std::string tip(const SweepRow& row) const {
    std::string out = fmt::format("{} by {}: ", pair_text(row), planner_);
    if (!row.time_ps) return out + "refused, " + row.refusal;
    return out + fmt::format("{}, bound {}, ratio {}", duration_text(*row.time_ps),
                             duration_text(row.bound_ps),
                             ratio_text(ratio_e4(*row.time_ps, row.bound_ps)));
  }

  // The colour scale, with marks at ratios 1, 2 and 4.
  static void draw_legend(Node svg, double y) {
    add_heat_scale(svg, kMargin, y - 8);
    for (double ratio : {1.0, 2.0, 4.0})
      add_text(svg, kMargin + kHeatScale * (1 - 1 / ratio), y + 18, kLabel, coordinate_text(ratio),
               ratio > 1 ? "middle" : "start");
    add_text(svg, kMargin + kHeatScale + 14, y + 2, kLabel,
             "times the bound; =: takes no time; no: refused by the planner; blank: forbidden by "
             "DTensor");
  }

  const std::string mesh_, planner_;
  std::vector<std::string> layouts_;           // in order of first appearance
  std::map<std::string, std::size_t> number_;  // index in layouts_
  std::map<std::pair<std::size_t, std::size_t>, const SweepRow*> rows_;
  SweepSummary summary_;
  std::size_t drawn_ = 0;
  double wide_ = 0, high_ = 0, labels_ = 0;
};

}  // namespace

void draw_matrix(Node parent, const SweepReport& report, std::string_view mesh,
                 std::string_view planner) {
  MatrixPicture(report, mesh, planner).draw(parent);
}

}  // namespace reshard::sim
