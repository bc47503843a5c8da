// SPDX-License-Identifier: BSD-3-Clause
// The page of a sweep: a table of planners, and a matrix of pairs for each mesh and planner.
#include "sim/page/pages.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/units.h"
#include "sim/page/page.h"
#include "sim/picture/pictures.h"
#include "sim/report/facts.h"

namespace reshard::sim {

namespace {

constexpr std::size_t kMostPairs = 1000;

std::vector<Figure> figures_of(const SweepReport& report) {
  return {{"requests", std::to_string(report.pairs), "pairs of placements"},
          {"planned and proved", std::to_string(report.planned),
           fmt::format("{} refused by every planner", report.pairs - report.planned)},
          {"forbidden", std::to_string(report.forbidden), "by DTensor itself"}};
}

void list_planners(Page& page, const SweepReport& report) {
  Node panel =
      page.add_panel("planners", "Planners",
                     "Time over the bound, over all pairs that have one; 1 is the physical limit.");
  HtmlTable table(panel, "Each planner on each mesh",
                  {"mesh", "planner", ">pairs", ">at the bound", ">refused", ">mean", ">worst",
                   "worst pair", "lost to"});
  for (const SweepSummary& entry : summarize(report)) {
    const SweepRow* worst = entry.worst;
    table.add_row(
        {entry.mesh, entry.planner, Cell::count(entry.pairs), Cell::count(entry.at_bound),
         Cell::count(entry.refused), Cell::ratio(entry.geometric_mean_e4),
         Cell::ratio(worst == nullptr ? std::nullopt : ratio_e4(*worst->time_ps, worst->bound_ps)),
         worst == nullptr ? "-" : pair_text(*worst),
         worst == nullptr || !worst->lost ? "-" : text(*worst->lost)});
  }
}

void draw_matrices(Page& page, const SweepReport& report) {
  Node panel = page.add_panel("matrices", "Matrix",
                              "From every layout to every other: time over the bound.");
  for (const std::string& mesh : report.meshes)
    for (const std::string& planner : report.planners)
      draw_matrix(add_frame(panel), report, mesh, planner);
}

void list_pairs(Page& page, const SweepReport& report) {
  std::size_t step = report.planners.size(), all = step == 0 ? 0 : report.rows.size() / step;
  std::size_t shown = std::min(kMostPairs, all);
  Node panel = page.add_panel("pairs", "Pairs");
  std::vector<std::string> titles{"mesh", "from", "to", ">bound"};
  for (const std::string& planner : report.planners) titles.push_back(">" + planner);
  HtmlTable table(panel, fmt::format("Time over the bound, {} of {} pairs", shown, all), titles);
  for (std::size_t i = 0; i < shown * step; i += step) {
    const SweepRow& first = report.rows[i];
    std::vector<Cell> cells{first.mesh, first.from, first.to, Cell::time(first.bound_ps)};
    for (std::size_t p = i; p < i + step; ++p) {
      const SweepRow& row = report.rows[p];
      cells.push_back(row.time_ps ? Cell::ratio(ratio_e4(*row.time_ps, row.bound_ps))
                                  : Cell("refused"));
    }
    table.add_row(cells);
  }
}

}  // namespace

std::string sweep_page(const SweepReport& report) {
  Page page("sweep", fmt::format("{}[{}] on {}", text(report.dtype), text(report.shape),
                                 fmt::join(report.meshes, ", ")));
  draw_figures(page.header(), figures_of(report));
  draw_facts(page.header(), {{"topology", report.topology},
                             {"planners", fmt::format("{}", fmt::join(report.planners, ", "))}});
  list_planners(page, report);
  draw_matrices(page, report);
  list_pairs(page, report);
  return page.text();
}

}  // namespace reshard::sim
