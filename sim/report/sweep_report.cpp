// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/sweep_report.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/base/units.h"

namespace reshard::sim {

namespace {

// Rounded to four decimals: math libraries can differ in the last bit of a logarithm, which these
// digits do not show.
std::int64_t rounded_e4(double value) {
  return static_cast<std::int64_t>(std::floor(value * 10'000 + 0.5));
}

SweepSummary summarize(const SweepReport& report, const std::string& mesh,
                       const std::string& planner) {
  SweepSummary out;
  out.mesh = mesh;
  out.planner = planner;
  // A sum of logarithms, since a product of thousands of ratios could exceed the range of double.
  double logarithms = 0;
  for (const SweepRow& row : report.rows) {
    if (row.mesh != mesh || row.planner != planner) continue;
    if (!row.time_ps) ++out.refused;
    if (!row.time_ps || row.bound_ps == 0) continue;
    ++out.pairs;
    if (*row.time_ps == row.bound_ps) ++out.at_bound;
    logarithms +=
        std::log(static_cast<double>(*row.time_ps)) - std::log(static_cast<double>(row.bound_ps));
    if (out.worst == nullptr ||
        Int128{*row.time_ps} * out.worst->bound_ps > Int128{*out.worst->time_ps} * row.bound_ps)
      out.worst = &row;
  }
  if (out.pairs > 0)
    out.geometric_mean_e4 = rounded_e4(std::exp(logarithms / static_cast<double>(out.pairs)));
  return out;
}

}  // namespace

// The least number of uses n >= 1 at which p2p's first use + n x time is at most that of every
// other planner. Each other planner gives a lower or an upper limit for n.
void win_back(std::span<SweepRow> rows) {
  for (SweepRow& own : rows) {
    if (own.planner != "p2p" || !own.time_ps || !own.first_use_ps) continue;
    Int128 least = 1, most = std::numeric_limits<std::int64_t>::max();
    for (const SweepRow& other : rows) {
      if (&other == &own || other.planner == "auto" || !other.time_ps) continue;
      Int128 more = *own.first_use_ps - *other.first_use_ps, saved = *other.time_ps - *own.time_ps;
      if (saved > 0)
        least = std::max(least, more > 0 ? (more + saved - 1) / saved : Int128{1});
      else if (saved == 0)
        most = more <= 0 ? most : 0;
      else
        most = std::min(most, more <= 0 ? -more / -saved : Int128{0});
    }
    if (least <= most) own.won_back_after = static_cast<std::int64_t>(least);
  }
}

std::vector<SweepSummary> summarize(const SweepReport& report) {
  std::vector<SweepSummary> out;
  for (const std::string& mesh : report.meshes)
    for (const std::string& planner : report.planners)
      out.push_back(summarize(report, mesh, planner));
  return out;
}

std::string pair_text(const SweepRow& row) { return fmt::format("{} -> {}", row.from, row.to); }

}  // namespace reshard::sim
