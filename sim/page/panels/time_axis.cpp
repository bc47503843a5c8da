// SPDX-License-Identifier: BSD-3-Clause
#include "sim/page/panels/time_axis.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/core.h>

#include "core/base/units.h"

namespace reshard::sim {

namespace {

constexpr int kMostTicks = 8;
constexpr double kAxisLeft = 148, kAxisRight = 72;

struct Unit {
  std::int64_t ps;
  std::string_view name;
};
constexpr std::array<Unit, 5> kUnits = {
    {{kPsPerSecond, "s"}, {1'000'000'000, "ms"}, {1'000'000, "us"}, {1000, "ns"}, {1, "ps"}}};

// The next of 1, 2, 5, 10, 20, ..
std::int64_t next_round(std::int64_t ps) {
  std::int64_t power = 1;
  while (ps / 10 >= power) power *= 10;
  return ps == 2 * power ? 5 * power : 2 * ps;
}

}  // namespace

TimeScale time_scale(std::int64_t end_ps) {
  return {end_ps, kAxisLeft, kTimeWidth - kAxisLeft - kAxisRight};
}

std::vector<TimeTick> time_ticks(std::int64_t end_ps, int most) {
  std::int64_t step = 1;
  while (end_ps / step > most) step = next_round(step);
  // The largest unit in which the step is a whole number.
  const Unit* unit = kUnits.data();
  while (step % unit->ps != 0) ++unit;
  std::vector<TimeTick> out;
  for (std::int64_t ps = 0; ps <= end_ps; ps += step)
    out.push_back({ps, fmt::format("{} {}", ps / unit->ps, unit->name)});
  return out;
}

void draw_time_axis(Node svg, const TimeScale& scale, double top, double bottom) {
  Node axis = add(svg, "g", {{"class", "axis"}});
  for (const TimeTick& tick : time_ticks(scale.end_ps, kMostTicks)) {
    double x = scale.x(tick.ps);
    add(axis, "line", {{"x1", x}, {"x2", x}, {"y1", top}, {"y2", bottom}});
    add(axis, "text",
        {{"x", x}, {"y", bottom + 16}, {"text-anchor", tick.ps == 0 ? "start" : "middle"}},
        tick.text);
  }
}

namespace {

// The number of colours that all readers can distinguish, without the colour of "others".
constexpr std::size_t kCausesShown = 6;
constexpr const char* kOthers = "rest";

}  // namespace

std::vector<CauseShare> shares_of(const PathFacts& path) {
  std::vector<CauseShare> out;
  std::size_t shown = std::min(kCausesShown, path.causes.size());
  int colours = 0;
  for (std::size_t i = 0; i < shown; ++i) {
    const PathFacts::Cause& cause = path.causes[i];
    std::string own = cause.name == "compute" ? "k-compute" : fmt::format("c{}", colours++);
    out.push_back({cause.name, own, cause.time_ps});
  }
  if (shown == path.causes.size()) return out;
  CauseShare others{fmt::format("{} others", path.causes.size() - shown), kOthers, 0};
  for (std::size_t i = shown; i < path.causes.size(); ++i) others.time_ps += path.causes[i].time_ps;
  out.push_back(others);
  return out;
}

std::string colour_of(const std::vector<CauseShare>& shares, const std::string& cause) {
  auto found = std::find_if(shares.begin(), shares.end(),
                            [&](const CauseShare& share) { return share.name == cause; });
  return found == shares.end() ? kOthers : found->colour;
}

namespace {

constexpr double kNarrowest = 0.4;

struct CauseOfWait {
  std::string cause;
  std::int64_t start_ps, end_ps;
};

// Merges neighbours with the same cause.
std::vector<CauseOfWait> waits_of(const PathFacts& path) {
  std::vector<CauseOfWait> out;
  for (const PathFacts::PathSpan& part : path.parts) {
    if (!out.empty() && out.back().cause == part.cause)
      out.back().end_ps = part.end_ps;
    else
      out.push_back({part.cause, part.start_ps, part.end_ps});
  }
  return out;
}

void add_part(Node plot, const TimeScale& scale, double top, const std::string& colour,
              const CauseOfWait& wait) {
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
  // The background has the colour of the others: it shows where waits are too short to be drawn.
  add_part(plot, scale, top, colour_of(shares, {}),
           {"causes too short to tell apart", 0, scale.end_ps});
  for (const CauseOfWait& wait : waits_of(path))
    if (scale.x(wait.end_ps) - scale.x(wait.start_ps) >= kNarrowest)
      add_part(plot, scale, top, colour_of(shares, wait.cause), wait);
}

}  // namespace reshard::sim
