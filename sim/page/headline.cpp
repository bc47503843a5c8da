// SPDX-License-Identifier: BSD-3-Clause
#include "sim/page/headline.h"

#include <fmt/format.h>

#include "core/base/units.h"
#include "sim/page/cause_colours.h"
#include "sim/page/legend.h"
#include "sim/report/time_tables.h"

namespace reshard::sim {

namespace {

constexpr double kBarWidth = 1000, kBarHeight = 24;

}  // namespace

void draw_figures(Node parent, const std::vector<Figure>& figures) {
  Node list = add(parent, "dl", {{"class", "figures"}});
  for (const Figure& figure : figures) {
    Node one = add(list, "div");
    add(one, "dt", {}, figure.name);
    add(one, "dd", {}, figure.value);
    if (!figure.note.empty()) add(one, "dd", {{"class", "note"}}, figure.note);
  }
}

void draw_facts(Node parent, const std::vector<Fact>& facts) {
  Node list = add(parent, "dl", {{"class", "facts"}});
  for (const Fact& fact : facts) {
    add(list, "dt", {}, fact.name);
    add(list, "dd", {}, fact.value);
  }
}

void draw_causes(Node parent, const PathFacts& path) {
  if (path.causes.empty()) return;
  std::int64_t end_ps = path.parts.back().end_ps;
  add(parent, "p", {{"class", "sentence"}}, path_sentence(path));
  Node svg = add_svg(parent, kBarWidth, kBarHeight, "what the critical path waits for");
  svg.append_attribute("class") = "bar";
  svg.append_attribute("preserveAspectRatio") = "none";
  Legend legend(parent);
  double x = 0;
  for (const CauseShare& share : shares_of(path)) {
    std::string tip = fmt::format("{}: {}, {}", share.name, duration_text(share.time_ps),
                                  share_text(share.time_ps, end_ps));
    double width = kBarWidth * static_cast<double>(share.time_ps) / static_cast<double>(end_ps);
    add_tip(add(svg, "rect",
                {{"class", share.colour},
                 {"x", x},
                 {"y", 0},
                 {"width", width},
                 {"height", kBarHeight}}),
            tip);
    x += width;
    legend.add_entry(share.colour, share.name, share_text(share.time_ps, end_ps));
  }
}

}  // namespace reshard::sim
