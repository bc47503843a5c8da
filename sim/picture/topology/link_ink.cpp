// SPDX-License-Identifier: BSD-3-Clause
#include "sim/picture/topology/link_ink.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/units.h"
#include "sim/study/run_facts.h"

namespace reshard::sim {
namespace {

enum class Family : std::uint8_t { NvLink, Pcie, Network };

Family family(PathClass path_class) {
  if (path_class <= PathClass::C2C) return Family::NvLink;
  return path_class == PathClass::NET ? Family::Network : Family::Pcie;
}

Shade colour_of(Family family) {
  auto always = [](const Colour& colour) { return Shade{colour, colour}; };
  switch (family) {
    case Family::NvLink:
      return always({0x00, 0x9e, 0x73});
    case Family::Pcie:
      return always({0x00, 0x72, 0xb2});
    case Family::Network:
      break;
  }
  return always({0xd5, 0x5e, 0x00});
}

// The link's name in topology files; both directions of a port share one.
std::string kind_name(const Topology& topology, ResourceId link) {
  Hop hop = topology.hop_of(link);
  bool port = hop.kind == Hop::Kind::SourceOut || hop.kind == Hop::Kind::DestinationIn;
  return port ? topology.node().ports[hop.index].name : topology.hop_name(hop);
}

}  // namespace

LinkInk::LinkInk(const Topology& topology, const NodeLinks& links, const LinkLoads& loads)
    : topology_(topology), links_(links), loads_(loads) {
  for (const NodeLinks::Link& link : links.links)
    widest_ = std::max(widest_, topology_.resource_bytes_per_s(link.in(topology_, 0)));
}

std::int64_t LinkInk::used(ResourceId link) const {
  if (!by_load()) return 0;
  std::int64_t bytes = loads_.uses[to_index(link)].bytes;
  return utilisation({"", bytes, 0, topology_.resource_bytes_per_s(link)}, loads_.end_ps, 1000);
}

double LinkInk::width(ResourceId link) const {
  return 2 + 6 * static_cast<double>(topology_.resource_bytes_per_s(link)) /
                 static_cast<double>(widest_);
}

std::optional<Shade> LinkInk::colour(ResourceId link, PathClass path_class) const {
  if (!by_load()) return colour_of(family(path_class));
  if (loads_.uses[to_index(link)].bytes == 0) return std::nullopt;
  return heat_of(used(link), 1000);
}

std::string LinkInk::tip(ResourceId link) const {
  std::string out = fmt::format("{}: {}", topology_.resource_name(link),
                                short_rate_text(topology_.resource_bytes_per_s(link)));
  if (by_load())
    out +=
        fmt::format(", carried {}, {} % of its capacity",
                    bytes_text(loads_.uses[to_index(link)].bytes), decimal_text(used(link), 10, 1));
  return out;
}

// Sorted by capacity, the widest first.
std::vector<LinkInk::Sample> LinkInk::samples() const {
  constexpr std::size_t most_names = 4, most_rows = 8;
  using Key = std::pair<std::int64_t, Family>;
  std::map<Key, std::vector<std::string>, std::greater<Key>> names;
  std::map<Key, Sample> looks;
  for (const NodeLinks::Link& link : links_.links) {
    ResourceId id = link.in(topology_, 0);
    Key key{topology_.resource_bytes_per_s(id), family(link.path_class)};
    std::string name = kind_name(topology_, id);
    std::vector<std::string>& known = names[key];
    if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
    looks[key] = {"", width(id), colour_of(key.second)};
  }
  std::vector<Sample> out;
  for (auto& [key, known] : names) {
    if (out.size() == most_rows) break;
    std::string more;
    if (known.size() > most_names) {
      more = fmt::format(" and {} more", known.size() - most_names + 1);
      known.resize(most_names - 1);
    }
    Sample sample = looks[key];
    sample.label =
        fmt::format("{}: {}{}", short_rate_text(key.first), fmt::join(known, ", "), more);
    out.push_back(sample);
  }
  return out;
}

}  // namespace reshard::sim
