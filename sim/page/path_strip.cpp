// SPDX-License-Identifier: BSD-3-Clause
#include "sim/page/path_strip.h"

#include <fmt/format.h>

#include "core/base/units.h"
#include "sim/page/cause_colours.h"

namespace reshard::sim {

namespace {

constexpr double kNarrowest = 0.4;

struct Wait {
  std::string cause;
  std::int64_t start_ps, end_ps;
};

// Neighbours that wait for the same are one.
std::vector<Wait> waits_of(const PathFacts& path) {
  std::vector<Wait> out;
  for (const PathFacts::Part& part : path.parts) {
    if (!out.empty() && out.back().cause == part.cause)
      out.back().end_ps = part.end_ps;
    else
      out.push_back({part.cause, part.start_ps, part.end_ps});
  }
  return out;
}

void add_part(Node plot, const TimeScale& scale, double top, const std::string& colour,
              const Wait& wait) {
  double x = scale.x(wait.start_ps), width = scale.x(wait.end_ps) - x;
  Node rect = add(plot, "rect",
                  {{"class", colour},
                   {"x", x - scale.left},
                   {"y", top},
                   {"width", width},
                   {"height", kPathStripHeight}});
  add_tip(rect,
          fmt::format("waits for {}\n{} to {}, {}", wait.cause, duration_text(wait.start_ps),
                      duration_text(wait.end_ps), duration_text(wait.end_ps - wait.start_ps)));
}

}  // namespace

void draw_path_strip(Node plot, const TimeScale& scale, double top, const PathFacts& path) {
  std::vector<CauseShare> shares = shares_of(path);
  // What is too short to be seen shows the colour of the others, below all.
  add_part(plot, scale, top, colour_of(shares, {}),
           {"causes too short to tell apart", 0, scale.end_ps});
  for (const Wait& wait : waits_of(path))
    if (scale.x(wait.end_ps) - scale.x(wait.start_ps) >= kNarrowest)
      add_part(plot, scale, top, colour_of(shares, wait.cause), wait);
}

}  // namespace reshard::sim
