// SPDX-License-Identifier: BSD-3-Clause
// The page that compares two reports: figures as pairs of bars, and what differs in each list.
#include "sim/page/pages.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "core/base/units.h"
#include "sim/page/page.h"

namespace reshard::sim {

namespace {

// Per list; larger files would be slow to open.
constexpr std::size_t kMostRows = 500;
// Longer lists show only their first rows; the others are folded.
constexpr std::size_t kMostUnfolded = 24, kFewUnfolded = 12;
constexpr std::size_t kMostBars = 24;
constexpr double kWidth = 960, kLeft = 190, kRight = 150, kBar = 11, kPair = 36, kTop = 4;

Cell cell_of(const std::optional<Amount>& amount) {
  if (!amount) return "-";
  return amount->integer ? Cell(amount->text(), *amount->integer) : Cell(amount->text());
}

Cell change_cell(const ComparedFigure& figure) {
  std::optional<double> change = figure.change();
  if (!change) return "-";
  return {change_text(change), static_cast<std::int64_t>(std::clamp(*change, -1e9, 1e9) * 1e6)};
}

// The figures at the top of the page, and their titles.
constexpr std::array<std::pair<std::string_view, const char*>, 7> kFirst{
    {{"time_ps", "time"},
     {"measured_ps.median", "measured"},
     {"predicted_ps", "predicted"},
     {"bound.time_ps", "bound"},
     {"ratio_to_bound", "ratio to bound"},
     {"bytes_received_max", "received, fullest rank"},
     {"peak_bytes_max", "peak memory"}}};

std::vector<Figure> headline_of(const Comparison& comparison) {
  std::vector<Figure> out;
  for (const auto& [name, title] : kFirst)
    for (const ComparedFigure& figure : comparison.figures)
      if (figure.name == name && figure.a && figure.b)
        out.push_back(figure.differs()
                          ? Figure{fmt::format("{} of b", title), figure.b->text(),
                                   fmt::format("{} against {}", change_text(figure.change()),
                                               figure.a->text())}
                          : Figure{title, figure.b->text(), "the same in both"});
  return out;
}

// Pairs of bars for the times that differ: a above b.
void draw_pairs(Node panel, const std::vector<const ComparedFigure*>& figures) {
  double longest = 0;
  for (const ComparedFigure* each : figures)
    longest = std::max({longest, each->a->value(), each->b->value()});
  double height = kTop + kPair * static_cast<double>(figures.size());
  Node svg = add_chart(panel, kWidth, height, "times of a and b");
  Node names = add(svg, "g", {{"class", "names"}});
  double y = kTop;
  for (const ComparedFigure* each : figures) {
    add(names, "text", {{"x", kLeft - 8}, {"y", y + 16}}, each->name);
    double row = y;
    for (const auto& [amount, style] :
         {std::pair(&*each->a, "other"), std::pair(&*each->b, "taken")}) {
      double width = (kWidth - kLeft - kRight) * amount->value() / longest;
      Node bar =
          add(svg, "rect",
              {{"class", style}, {"x", kLeft}, {"y", row}, {"width", width}, {"height", kBar}});
      add_tip(bar, amount->text());
      add(svg, "text", {{"class", "value"}, {"x", kLeft + width + 8}, {"y", row + 10}},
          amount->text());
      row += kBar + 3;
    }
    y += kPair;
  }
}

void show_times(Page& page, const Comparison& comparison) {
  std::vector<const ComparedFigure*> times;
  for (const ComparedFigure& figure : comparison.figures)
    if (figure.differs() && figure.a && figure.b && figure.a->unit == Unit::Time &&
        figure.a->value() > 0 && figure.b->value() > 0 && times.size() < kMostBars)
      times.push_back(&figure);
  if (times.empty()) return;
  Node panel =
      page.add_panel("times", "Times", "Values of a above and of b below, where they differ.");
  draw_pairs(panel, times);
  Legend legend(panel);
  legend.add_entry("other", "a: " + comparison.name_a);
  legend.add_entry("taken", "b: " + comparison.name_b);
}

void show_figures(Page& page, const Comparison& comparison) {
  Node panel = page.add_panel("figures", "Figures");
  HtmlTable table(panel, "All figures", {"figure", ">a", ">b", ">change"});
  for (const ComparedFigure& figure : comparison.figures) {
    Node row = table.add_row({figure.name, cell_of(figure.a), cell_of(figure.b),
                              figure.differs() ? change_cell(figure) : Cell("")});
    if (figure.differs()) row.append_attribute("class") = "taken";
  }
}

void show_keys(Node panel, const char* where, const std::vector<std::string>& keys) {
  if (keys.empty()) return;
  Node folded = add_folded(panel, fmt::format("{}: {}", where, keys.size()));
  std::size_t shown = std::min(kMostRows, keys.size());
  std::string names;
  for (std::size_t i = 0; i < shown; ++i)
    fmt::format_to(std::back_inserter(names), "{}{}", i > 0 ? ", " : "", keys[i]);
  if (shown < keys.size()) names += " ...";
  add(folded, "p", {}, names);
}

void list_figures(Node panel, const std::string& caption, const ComparedList& list,
                  std::size_t shown) {
  HtmlTable table(panel, caption, {"of", "figure", ">a", ">b", ">change"});
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& [key, figure] = list.differing[i];
    table.add_row({key, figure.name, cell_of(figure.a), cell_of(figure.b), change_cell(figure)});
  }
}

// "critical_causes" becomes "Critical causes".
std::string heading_of(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  if (!name.empty() && name[0] >= 'a' && name[0] <= 'z') name[0] = static_cast<char>(name[0] - 32);
  return name;
}

void show_list(Page& page, const ComparedList& list, std::size_t number) {
  Node panel = page.add_panel(fmt::format("list{}", number).c_str(), heading_of(list.name),
                              fmt::format("{} in a, {} in b.", list.count_a, list.count_b));
  show_keys(panel, "Only in a", list.only_a);
  show_keys(panel, "Only in b", list.only_b);
  if (list.differing.empty()) return;
  std::size_t all = list.differing.size(), shown = std::min(kMostRows, all);
  std::size_t unfolded = shown <= kMostUnfolded ? shown : kFewUnfolded;
  list_figures(panel,
               fmt::format("{} of {} that differ, greatest differences first", unfolded,
                           counted(static_cast<std::int64_t>(all), "figure")),
               list, unfolded);
  if (unfolded < shown)
    list_figures(add_folded(panel, "More differences"), fmt::format("{} of {}", shown, all), list,
                 shown);
}

}  // namespace

std::string compare_page(const Comparison& comparison) {
  Page page("comparison", comparison.name_a + " and " + comparison.name_b);
  draw_figures(page.header(), headline_of(comparison));
  std::vector<Fact> facts{{"a", comparison.name_a}, {"b", comparison.name_b}};
  for (const ComparedText& each : comparison.texts)
    facts.push_back({each.name, fmt::format("{} in a, {} in b", each.a, each.b)});
  if (!comparison.differs()) facts.push_back({"differs", "nothing"});
  draw_facts(page.header(), facts);
  show_times(page, comparison);
  show_figures(page, comparison);
  for (std::size_t i = 0; i < comparison.lists.size(); ++i) show_list(page, comparison.lists[i], i);
  return page.text();
}

}  // namespace reshard::sim
