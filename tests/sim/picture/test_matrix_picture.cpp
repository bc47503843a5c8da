// SPDX-License-Identifier: BSD-3-Clause
// Every pair of a sweep has its cell, with its ratio, at its row and column.
#include <catch2/catch.hpp>
#include <set>

#include "sim/picture/pictures.h"
#include "tests/sim/picture/read_back.h"

using namespace reshard;
using namespace reshard::sim;

namespace {

SweepRow row_of(const std::string& from, const std::string& to, std::optional<std::int64_t> time_ps,
                std::int64_t bound_ps, const std::string& planner = "p2p") {
  SweepRow row;
  row.mesh = "2x2", row.from = from, row.to = to, row.planner = planner;
  row.time_ps = time_ps, row.bound_ps = bound_ps;
  if (!time_ps) row.refusal = "it does not <fold>";
  return row;
}

SweepReport report_of(std::vector<SweepRow> rows) {
  SweepReport report;
  report.meshes = {"2x2"};
  report.planners = {"p2p", "rule"};
  report.rows = std::move(rows);
  return report;
}

ReadBack picture_of(const SweepReport& report) {
  return ReadBack([&](Node parent) { draw_matrix(parent, report, "2x2", "p2p"); });
}

struct Cell {
  Area area;
  std::string colour, text;
};
std::map<std::string, Cell> cells_of(const ReadBack& picture) {
  std::map<std::string, Cell> out;
  for (Node node : picture.all("//g[@class='cell']"))
    out[node.child("title").text().get()] = {area(node.child("rect")),
                                             node.child("rect").attribute("fill").value(),
                                             node.child("text").text().get()};
  return out;
}

}  // namespace

TEST_CASE("cells say pair, time, bound and ratio, and stand in rows and columns") {
  SweepReport report = report_of(
      {row_of("R", "R", 0, 0), row_of("R", "S(0)", 0, 0), row_of("S(0)", "R", 1'000'000, 1'000'000),
       row_of("S(0)", "S(0)", 0, 0), row_of("S(0)", "S(1)", 3'000'000, 2'000'000),
       row_of("P(sum)", "S(1)", {}, 1'000'000), row_of("P(sum)", "R", 2'000'000, 1'000'000),
       row_of("S(0)", "P(sum)", 1'000'000, 0), row_of("S(0)", "R", 9'000'000, 1'000'000, "rule")});
  ReadBack picture = picture_of(report);
  auto cells = cells_of(picture);
  CHECK(cells.size() == 8);
  const Cell &at_bound = cells.at("S(0) -> R by p2p: 1.000 us, bound 1.000 us, ratio 1.0000"),
             &half = cells.at("S(0) -> S(1) by p2p: 3.000 us, bound 2.000 us, ratio 1.5000"),
             &twice = cells.at("P(sum) -> R by p2p: 2.000 us, bound 1.000 us, ratio 2.0000"),
             &refused = cells.at("P(sum) -> S(1) by p2p: refused, it does not <fold>"),
             &same = cells.at("R -> R by p2p: 0 ps, bound 0 ps, ratio -"),
             &needless = cells.at("S(0) -> P(sum) by p2p: 1.000 us, bound 0 ps, ratio -");
  CHECK(at_bound.text == "1.00");
  CHECK(half.text == "1.50");
  CHECK(twice.text == "2.00");
  CHECK(refused.text == "no");
  CHECK(same.text == "=");
  CHECK(needless.text == "inf");
  CHECK(at_bound.colour == "#fef187");
  CHECK(half.colour == text(heat_of(1, 3).day));
  CHECK(twice.colour == text(heat_of(1, 2).day));
  CHECK(needless.colour == "#00224e");
  // From is a row, to a column.
  CHECK(at_bound.area.y == half.area.y);
  CHECK(at_bound.area.x == twice.area.x);
  CHECK(half.area.x == refused.area.x);
  CHECK(twice.area.y == refused.area.y);
  CHECK(same.area.y < half.area.y);
  auto texts = picture.texts("text");
  CHECK(texts["P(sum)"] == 2);
  CHECK(texts["p2p on 2x2"] == 1);
  CHECK(texts["time over bound, from rows to columns; 3 pairs with a bound, 1 at the bound, mean "
              "1.4422"] == 1);
}

TEST_CASE("ratios have as many digits as a cell holds") {
  auto ratio = [](std::int64_t time_ps) {
    return cells_of(picture_of(report_of({row_of("S(0)", "R", time_ps, 10'000)})))
        .begin()
        ->second.text;
  };
  CHECK(ratio(10'049) == "1.00");
  CHECK(ratio(99'949) == "9.99");
  CHECK(ratio(99'950) == "10.0");
  CHECK(ratio(999'499) == "99.9");
  CHECK(ratio(999'500) == "100");
  CHECK(ratio(123'456'789) == "12346");
}

TEST_CASE("cells of many layouts do not overlap, and too many are counted") {
  std::vector<SweepRow> rows;
  auto name = [](int i) { return "S(" + std::to_string(i) + ")R"; };
  for (int from = 0; from < 70; ++from)
    for (int to = 0; to < 70; ++to)
      rows.push_back(
          row_of(name(from), name(to), from == to ? 0 : 1000 + to, from == to ? 0 : 1000));
  ReadBack picture = picture_of(report_of(rows));
  CHECK(picture.bytes() < 2'500'000);
  std::vector<Node> cells = picture.all("//g[@class='cell']/rect");
  CHECK(cells.size() == 64 * 64);
  std::set<std::pair<double, double>> corners;
  for (Node cell : cells) corners.emplace(number(cell, "x"), number(cell, "y"));
  CHECK(corners.size() == cells.size());
  std::set<double> lefts;
  for (auto [x, y] : corners) lefts.insert(x);
  CHECK(lefts.size() == 64);
  double last = -1000;
  for (double x : lefts) {
    CHECK(x >= last + number(cells[0], "width"));
    last = x;
  }
  CHECK(last + number(cells[0], "width") <= number(picture.svg(), "width"));
  bool said = false;
  for (auto [text, times] : picture.texts("text"))
    said = said || text.ends_with("; the first 64 of 70 layouts");
  CHECK(said);
}
