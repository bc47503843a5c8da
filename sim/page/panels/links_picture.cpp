// SPDX-License-Identifier: BSD-3-Clause
#include "sim/page/panels/panels.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "core/base/units.h"
#include "sim/page/page.h"
#include "sim/page/panels/time_axis.h"
#include "sim/study/run_facts.h"

namespace reshard::sim {

namespace {

constexpr std::size_t kMostKinds = 10, kLinksListed = 20;
constexpr std::size_t kCells = 400;  // cells of time; each shows its mean
constexpr double kStripTop = 8, kStripBottom = 28, kStrip = 44, kStripGap = 12;

// Used share of the capacity, by cell.
using Fullness = std::vector<double>;

struct LinkKind {
  std::string name;
  std::vector<ResourceId> links;  // those that carried bytes
  ResourceId fullest;
  Fullness of_fullest, mean;
};

double share_used(const Timeline& timeline, const Topology& topology, ResourceId link) {
  return static_cast<double>(timeline.resources[to_index(link)].bytes) /
         static_cast<double>(topology.resource_bytes_per_s(link));
}

// The work that a link had done at a given time; the rate is constant between knots.
class WorkAt {
 public:
  explicit WorkAt(const std::vector<WorkDone>& knots) : knots_(knots) {}
  // Times must not descend from call to call.
  double operator()(std::int64_t ps) {
    while (next_ < knots_.size() && knots_[next_].time_ps <= ps) ++next_;
    if (next_ == 0) return 0;
    const WorkDone& from = knots_[next_ - 1];
    if (next_ == knots_.size()) return static_cast<double>(from.work);
    const WorkDone& to = knots_[next_];
    double share =
        static_cast<double>(ps - from.time_ps) / static_cast<double>(to.time_ps - from.time_ps);
    return static_cast<double>(from.work) + share * static_cast<double>(to.work - from.work);
  }

 private:
  const std::vector<WorkDone>& knots_;
  std::size_t next_ = 0;
};

Fullness fullness_of(const Timeline& timeline, const Topology& topology, ResourceId link) {
  // Work is in 10^-12 byte, that is bytes per second times picoseconds.
  WorkAt work(timeline.work[to_index(link)]);
  auto capacity = static_cast<double>(topology.resource_bytes_per_s(link));
  Fullness out;
  std::int64_t begin_ps = 0;
  double done = work(0);
  for (std::size_t cell = 0; cell < kCells; ++cell) {
    auto end_ps = static_cast<std::int64_t>(Int128{timeline.end_ps} * (cell + 1) / kCells);
    double by_then = work(end_ps);
    double most = capacity * static_cast<double>(end_ps - begin_ps);
    out.push_back(most > 0 ? std::min(1.0, (by_then - done) / most) : 0);
    begin_ps = end_ps;
    done = by_then;
  }
  return out;
}

// Sorted by the use of each kind's fullest link, then by name.
std::vector<LinkKind> kinds_of(const Timeline& timeline, const Topology& topology) {
  std::map<std::string, LinkKind> by_name;
  for (std::size_t i = 0; i < timeline.work.size(); ++i) {
    auto link = id_of<ResourceId>(i);
    if (timeline.work[i].empty()) continue;
    LinkKind& kind = by_name[topology.hop_name(topology.hop_of(link))];
    if (kind.links.empty() ||
        share_used(timeline, topology, link) > share_used(timeline, topology, kind.fullest))
      kind.fullest = link;
    kind.links.push_back(link);
  }
  std::vector<LinkKind> out;
  for (auto& [name, kind] : by_name) {
    kind.name = name;
    out.push_back(std::move(kind));
  }
  std::stable_sort(out.begin(), out.end(), [&](const LinkKind& a, const LinkKind& b) {
    return share_used(timeline, topology, a.fullest) > share_used(timeline, topology, b.fullest);
  });
  return out;
}

void find_fullness(LinkKind& kind, const Timeline& timeline, const Topology& topology) {
  kind.mean.assign(kCells, 0);
  for (ResourceId link : kind.links) {
    Fullness own = fullness_of(timeline, topology, link);
    for (std::size_t cell = 0; cell < kCells; ++cell)
      kind.mean[cell] += own[cell] / static_cast<double>(kind.links.size());
    if (link == kind.fullest) kind.of_fullest = std::move(own);
  }
}

// A stepped line from the left of a strip to its right, with points only where it changes.
std::string step_line(const Fullness& values, const TimeScale& scale, double bottom) {
  std::string out;
  double last = -1;
  for (std::size_t cell = 0; cell < values.size(); ++cell) {
    double y = bottom - kStrip * values[cell];
    if (coordinate_text(y) == coordinate_text(last)) continue;
    double x = scale.left + scale.width * static_cast<double>(cell) / kCells;
    out += fmt::format("{}{} {}V{}", out.empty() ? "M" : "H", coordinate_text(x),
                       out.empty() ? coordinate_text(bottom) : "", coordinate_text(y));
    last = y;
  }
  return out +
         fmt::format("H{}V{}", coordinate_text(scale.left + scale.width), coordinate_text(bottom));
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

void draw_strip(Node svg, const LinkKind& kind, const Timeline& timeline, const Topology& topology,
                double top, const TimeScale& scale) {
  double bottom = top + kStrip;
  std::int64_t end_ps = timeline.end_ps;
  const ResourceUse& use = timeline.resources[to_index(kind.fullest)];
  Int128 bytes = 0;
  for (ResourceId link : kind.links) bytes += timeline.resources[to_index(link)].bytes;
  std::string name = topology.resource_name(kind.fullest);
  Node strip = add(svg, "g", {{"class", "strip"}});
  add_tip(strip,
          fmt::format("{}: {}, busy for {} of {}\n{} links of this kind carry {} in total", name,
                      bytes_text(use.bytes), duration_text(use.busy_ps), duration_text(end_ps),
                      kind.links.size(), bytes_text(static_cast<std::int64_t>(bytes))));
  add(strip, "rect",
      {{"class", "ground"},
       {"x", scale.left},
       {"y", top},
       {"width", scale.width},
       {"height", kStrip}});
  add(strip, "path", {{"class", "fullest"}, {"d", step_line(kind.of_fullest, scale, bottom)}});
  add(strip, "path", {{"class", "mean"}, {"d", step_line(kind.mean, scale, bottom)}});
  Node names = add(svg, "g", {{"class", "names"}});
  add(names, "text", {{"x", scale.left - 8}, {"y", top + 18}}, kind.name);
  add(names, "text", {{"class", "faint"}, {"x", scale.left - 8}, {"y", top + 34}},
      fmt::format("{} link{}", kind.links.size(), kind.links.size() == 1 ? "" : "s"));
  double used =
      share_used(timeline, topology, kind.fullest) * kPsPerSecond / static_cast<double>(end_ps);
  add(svg, "text",
      {{"class", "value"}, {"x", scale.left + scale.width + 8}, {"y", bottom - kStrip / 2 + 4}},
      percent(used));
}

void add_legend(Node panel) {
  Legend legend(panel);
  legend.add_entry("fullest", "the fullest link of its kind");
  legend.add_entry("mean", "mean of all links of the kind that carry data");
  legend.add_words("right: share of its capacity that the fullest link used");
}

void list_links(Node panel, const Timeline& timeline, const Topology& topology) {
  std::vector<LinkUse> links = busiest_links(timeline, topology, kLinksListed);
  HtmlTable table(add_folded(panel, "Hot links"), fmt::format("The {} fullest links", links.size()),
                  {"link", ">bytes", ">capacity", ">busy", ">used"});
  for (const LinkUse& link : links) {
    std::int64_t used = utilisation(link, timeline.end_ps, 10'000);
    table.add_row({link.name,
                   Cell::bytes(link.bytes),
                   {rate_text(link.bytes_per_s), link.bytes_per_s},
                   Cell::time(link.busy_ps),
                   {decimal_text(used, 100, 1) + " %", used}});
  }
}

}  // namespace

void draw_links(Node panel, const Timeline& timeline, const Topology& topology) {
  std::vector<LinkKind> kinds = kinds_of(timeline, topology);
  if (kinds.empty() || timeline.end_ps == 0) return;
  std::size_t shown = std::min(kMostKinds, kinds.size());
  double height = static_cast<double>(shown) * (kStrip + kStripGap) - kStripGap;
  TimeScale scale = time_scale(timeline.end_ps);
  Node svg =
      add_chart(panel, kTimeWidth, kStripTop + height + kStripBottom, "link utilisation over time");
  draw_time_axis(svg, scale, kStripTop, kStripTop + height);
  for (std::size_t i = 0; i < shown; ++i) {
    find_fullness(kinds[i], timeline, topology);
    draw_strip(svg, kinds[i], timeline, topology,
               kStripTop + static_cast<double>(i) * (kStrip + kStripGap), scale);
  }
  add_legend(panel);
  if (shown < kinds.size())
    add(panel, "p", {{"class", "aside"}},
        fmt::format("The fullest {} of {} kinds of links are shown.", shown, kinds.size()));
  list_links(panel, timeline, topology);
}

}  // namespace reshard::sim
