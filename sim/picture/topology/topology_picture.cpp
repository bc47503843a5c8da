// SPDX-License-Identifier: BSD-3-Clause
#include "sim/picture/pictures.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/units.h"
#include "sim/picture/drawing.h"
#include "sim/picture/topology/link_ink.h"
#include "sim/picture/topology/node_links.h"
#include "sim/picture/topology/node_picture.h"

namespace reshard::sim {
namespace {

constexpr std::int32_t kMostDevices = 128;  // of a node
constexpr double kMargin = 20, kGap = 24, kHead = 58, kRest = 120;

class TopologyPicture {
 public:
  TopologyPicture(const Topology& topology, const LinkLoads& loads)
      : topology_(topology),
        links_(links_of(topology, kMostDevices)),
        ink_(topology, links_, loads),
        node_(topology, links_, ink_),
        drawn_(nodes_drawn()) {}

  void draw(Node parent) const {
    auto count = static_cast<double>(drawn_.size());
    double nodes = count * node_.width() + (count - 1) * kGap, left = kMargin + node_.label_width();
    bool rest = topology_.nodes() > static_cast<std::int32_t>(drawn_.size());
    double wide = nodes + (rest ? kGap + kRest : 0);
    double y = kHead + node_.outside_height(), bottom = y + node_.height() + kGap;
    std::vector<std::string> notes = notes_below();
    std::vector<LinkInk::Sample> samples = ink_.samples();
    double lines = static_cast<double>(notes.size() + samples.size()) + (ink_.by_load() ? 2 : 0);
    double width = std::max(left + wide, 460.0) + kMargin;
    Node svg = add_picture(parent, width, bottom + 18 * lines + 8, topology_.name());
    add_heading(svg, kMargin, 26, 16, topology_.name());
    add_text(svg, kMargin, 45, 12,
             fmt::format("{} of {}", counted(topology_.nodes(), "node"),
                         counted(topology_.node().devices, "GPU")),
             "start", Tone::Soft);
    for (std::size_t n = 0; n < drawn_.size(); ++n)
      node_.draw(svg, drawn_[n], left + static_cast<double>(n) * (node_.width() + kGap), y);
    if (rest) draw_rest(svg, left + nodes + kGap, y);
    node_.draw_labels(svg, left, y);
    node_.draw_outside(svg, left, wide, y);
    draw_legend(svg, samples, notes, bottom);
  }

 private:
  // As many nodes as fit a screen; with loads, those with the fullest links first.
  std::vector<std::int32_t> nodes_drawn() const {
    std::int32_t most = std::clamp(16 / links_.devices, 1, 8);
    std::vector<std::int32_t> nodes(to_index(topology_.nodes()));
    std::iota(nodes.begin(), nodes.end(), 0);
    if (ink_.by_load()) {
      std::vector<std::int64_t> fullest;
      for (std::int32_t node : nodes) fullest.push_back(fullest_of(node));
      std::stable_sort(nodes.begin(), nodes.end(), [&](std::int32_t a, std::int32_t b) {
        return fullest[to_index(a)] > fullest[to_index(b)];
      });
    }
    nodes.resize(std::min(nodes.size(), to_index(most)));
    return nodes;
  }

  std::int64_t fullest_of(std::int32_t node) const {
    std::int64_t most = 0;
    for (const NodeLinks::Link& link : links_.links)
      if (!link.fabric) most = std::max(most, ink_.used(link.in(topology_, node)));
    return most;
  }

  void draw_rest(Node svg, double x, double y) const {
    Node box = add_rectangle(svg, x, y, kRest, node_.height());
    set(box, {"rx", 8});
    set(box, {"stroke-dasharray", "5 4"});
    fill(box, Tone::Paper);
    stroke(box, Tone::Edge, 1.2);
    std::size_t more = to_index(topology_.nodes()) - drawn_.size();
    double middle = y + node_.height() / 2;
    add_heading(svg, x + kRest / 2, middle, 14, fmt::format("+ {}", more), "middle");
    add_text(svg, x + kRest / 2, middle + 18, 12,
             more == 1 ? "node like these" : "nodes like these", "middle", Tone::Soft);
  }

  std::vector<std::string> notes_below() const {
    std::vector<std::string> notes;
    if (links_.devices < topology_.node().devices)
      notes.push_back(fmt::format("The first {} of {} GPUs of a node.", links_.devices,
                                  topology_.node().devices));
    if (ink_.by_load() && topology_.nodes() > static_cast<std::int32_t>(drawn_.size()))
      notes.push_back("The nodes drawn are those with the fullest links.");
    if (!links_.idle.empty())
      notes.push_back(fmt::format(
          "On no route: {}{}.", links_.idle.front(),
          links_.idle.size() > 1 ? fmt::format(" and {} more", links_.idle.size() - 1) : ""));
    return notes;
  }

  void draw_legend(Node svg, const std::vector<LinkInk::Sample>& samples,
                   const std::vector<std::string>& notes, double y) const {
    for (const LinkInk::Sample& sample : samples) {
      Node line =
          add(svg, "path",
              {{"d", fmt::format("M{} {}h34", coordinate_text(kMargin), coordinate_text(y - 4))}});
      if (ink_.by_load())
        stroke(line, Tone::Edge, sample.width);
      else
        stroke(line, sample.colour, sample.width);
      add_text(svg, kMargin + 44, y, 12, sample.label);
      y += 18;
    }
    if (ink_.by_load()) {
      add_heat_scale(svg, kMargin + 44, y - 8);
      add_text(svg, kMargin + 38, y + 2, 12, "0 %", "end");
      add_text(svg, kMargin + 44 + kHeatScale + 8, y + 2, 12,
               "100 % of a link's capacity; empty: nothing");
      y += 36;
    }
    for (const std::string& note : notes) {
      add_text(svg, kMargin, y, 12, note, "start", Tone::Soft);
      y += 18;
    }
  }

  const Topology& topology_;
  const NodeLinks links_;
  const LinkInk ink_;
  const NodePicture node_;
  const std::vector<std::int32_t> drawn_;
};

}  // namespace

void draw_topology(Node parent, const Topology& topology, const LinkLoads& loads) {
  TopologyPicture(topology, loads).draw(parent);
}

}  // namespace reshard::sim
