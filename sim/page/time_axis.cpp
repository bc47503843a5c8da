// SPDX-License-Identifier: BSD-3-Clause
#include "sim/page/time_axis.h"

#include <array>
#include <string_view>

#include <fmt/format.h>

#include "core/base/units.h"

namespace reshard::sim {

namespace {

constexpr int kMostTicks = 8;
constexpr double kLeft = 148, kRight = 72;

struct Unit {
  std::int64_t ps;
  std::string_view name;
};
constexpr std::array<Unit, 5> kUnits = {
    {{kPsPerSecond, "s"}, {1'000'000'000, "ms"}, {1'000'000, "us"}, {1000, "ns"}, {1, "ps"}}};

// 1, 2, 5, 10, 20, ..
std::int64_t next_round(std::int64_t ps) {
  std::int64_t power = 1;
  while (ps / 10 >= power) power *= 10;
  return ps == 2 * power ? 5 * power : 2 * ps;
}

}  // namespace

TimeScale time_scale(std::int64_t end_ps) { return {end_ps, kLeft, kTimeWidth - kLeft - kRight}; }

std::vector<TimeTick> time_ticks(std::int64_t end_ps, int most) {
  std::int64_t step = 1;
  while (end_ps / step > most) step = next_round(step);
  // The largest unit in which steps are whole.
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

}  // namespace reshard::sim
