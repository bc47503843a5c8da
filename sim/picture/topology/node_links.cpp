// SPDX-License-Identifier: BSD-3-Clause
#include "sim/picture/topology/node_links.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include <fmt/core.h>

#include "core/base/disjoint_sets.h"
#include "core/base/units.h"

namespace reshard::sim {
namespace {

std::int32_t resources_per_node(const Topology& topology) {
  return (topology.resource_count() - static_cast<std::int32_t>(topology.fabric().size())) /
         topology.nodes();
}

using Devices = std::set<std::int32_t>;

struct Crossed {
  PathClass path_class;                     // the best of the routes that cross it
  Devices alone;                            // it is their own, or leads out of the node
  std::map<std::int32_t, Devices> between;  // pairs of devices, both ways
};

// Whose the link is that all routes between these devices cross: if they lead from one side to the
// other, as up from a switch, that of the smaller side; else that of all, as a bus.
Devices sharing(const std::map<std::int32_t, Devices>& between) {
  Devices out, seen;
  for (const auto& start : between) {
    if (seen.contains(start.first)) continue;
    std::array<Devices, 2> sides{Devices{start.first}, Devices{}};
    bool has_sides = true;
    std::vector<std::int32_t> reached{start.first};
    while (!reached.empty()) {
      std::int32_t at = reached.back();
      reached.pop_back();
      std::size_t side = sides[0].contains(at) ? 0 : 1;
      for (std::int32_t next : between.at(at)) {
        has_sides = has_sides && !sides[side].contains(next);
        if (!sides[side].contains(next) && sides[1 - side].insert(next).second)
          reached.push_back(next);
      }
    }
    if (sides[0].size() < sides[1].size()) std::swap(sides[0], sides[1]);
    seen.insert(sides[0].begin(), sides[0].end());
    seen.insert(sides[1].begin(), sides[1].end());
    out.insert(sides[1].begin(), sides[1].end());
    if (!has_sides || sides[0].size() == sides[1].size())
      out.insert(sides[0].begin(), sides[0].end());
  }
  return out;
}

// By resource of the first node and of the fabric.
std::map<std::int32_t, Crossed> crossed(const Topology& topology, std::int32_t devices) {
  std::map<std::int32_t, Crossed> out;
  const std::int32_t per_node = resources_per_node(topology), inside = per_node * topology.nodes();
  auto follow = [&](Rank from, Rank to) {
    const PathClass path_class = topology.rule(from, to).path_class();
    const std::int32_t a = to_int(from), b = to_int(to);
    for (ResourceId id : topology.route(from, to).resources) {
      auto r = static_cast<std::int32_t>(id);
      if (r < inside && r >= per_node) continue;  // of the other node
      Crossed& link = out.try_emplace(r, Crossed{path_class, {}, {}}).first->second;
      link.path_class = std::min(link.path_class, path_class);
      Hop::Kind kind = topology.hop_of(id).kind;
      bool first = topology.node_of(from) == 0, second = topology.node_of(to) == 0;
      if (kind == Hop::Kind::SourceOut || (kind != Hop::Kind::DestinationIn && !second)) {
        link.alone.insert(a);
      } else if (kind == Hop::Kind::DestinationIn || !first) {
        link.alone.insert(b);
      } else {
        link.between[a].insert(b);
        link.between[b].insert(a);
      }
    }
  };
  for (std::int32_t a = 0; a < devices; ++a) {
    for (std::int32_t b = 0; b < devices; ++b)
      if (a != b) follow(Rank{a}, Rank{b});
    if (topology.nodes() < 2) continue;
    Rank outside{topology.node().devices};  // one of the next node represents all
    follow(Rank{a}, outside);
    follow(outside, Rank{a});
  }
  return out;
}

}  // namespace

ResourceId NodeLinks::Link::in(const Topology& topology, std::int32_t node) const {
  return ResourceId{index + resources_per_node(topology) * (fabric ? topology.nodes() : node)};
}

namespace {

// Where all of a chain of devices reach each other, they meet; else the pairs of it do.
std::vector<NodeLinks::Meeting> meetings_of(const Topology& topology, std::int32_t devices) {
  using Pair = std::pair<std::int32_t, std::int32_t>;
  std::map<std::pair<PathClass, std::int32_t>, std::vector<Pair>> pairs;  // by class and port
  for (std::int32_t a = 0; a < devices; ++a)
    for (std::int32_t b = a + 1; b < devices; ++b) {
      const RouteRule& rule = topology.rule(Rank{a}, Rank{b});
      if (std::all_of(rule.hops.begin(), rule.hops.end(), [](const Hop& hop) {
            return hop.kind == Hop::Kind::SourceOut || hop.kind == Hop::Kind::DestinationIn;
          }))
        pairs[{rule.path_class(), rule.hops.front().index}].emplace_back(a, b);
    }
  std::vector<NodeLinks::Meeting> out;
  for (const auto& [key, all] : pairs) {
    DisjointSets sets(to_index(devices));
    for (auto [a, b] : all) sets.join(to_index(a), to_index(b));
    std::map<std::size_t, std::vector<Pair>> chains;
    for (const Pair& pair : all) chains[sets.first(to_index(pair.first))].push_back(pair);
    for (const auto& chain : chains) {
      Devices members;
      for (auto [a, b] : chain.second) members.insert({a, b});
      if (chain.second.size() == members.size() * (members.size() - 1) / 2)
        out.push_back({{members.begin(), members.end()}, key.first});
      else
        for (auto [a, b] : chain.second) out.push_back({{a, b}, key.first});
    }
  }
  return out;
}

}  // namespace

NodeLinks links_of(const Topology& topology, std::int32_t most_devices) {
  NodeLinks out;
  out.devices = std::min(topology.node().devices, most_devices);
  out.meetings = meetings_of(topology, out.devices);
  const std::map<std::int32_t, Crossed> links = crossed(topology, out.devices);
  const std::int32_t per_node = resources_per_node(topology), inside = per_node * topology.nodes();
  for (std::int32_t r = 0; r < topology.resource_count(); ++r) {
    if (r >= per_node && r < inside) continue;
    auto found = links.find(r);
    if (found != links.end()) {
      Devices all = sharing(found->second.between);
      all.insert(found->second.alone.begin(), found->second.alone.end());
      out.links.push_back({r >= inside,
                           r >= inside ? r - inside : r,
                           {all.begin(), all.end()},
                           found->second.path_class});
    } else if (out.devices == topology.node().devices) {
      out.idle.push_back(topology.resource_name(ResourceId{r}));
    }
  }
  return out;
}

std::vector<LinkRow> rows_of(const Topology& topology, const NodeLinks& links) {
  using Of = LinkRow::Of;
  // What may share a row: alike in class, kind, number of devices, and for ports the name.
  std::map<std::tuple<PathClass, Of, std::size_t, std::string>, std::vector<std::size_t>> equal;
  for (std::size_t i = 0; i < links.links.size(); ++i) {
    const NodeLinks::Link& link = links.links[i];
    if (link.fabric) continue;
    Hop hop = topology.hop_of(link.in(topology, 0));
    bool port = hop.kind == Hop::Kind::SourceOut || hop.kind == Hop::Kind::DestinationIn;
    equal[{link.path_class, port ? Of::Ports : Of::Shared, link.devices.size(),
           port ? topology.hop_name(hop) + ", " : ""}]
        .push_back(i);
  }
  for (std::size_t i = 0; i < links.meetings.size(); ++i)
    equal[{links.meetings[i].path_class, Of::Meetings, 0, "reach each other, "}].push_back(i);
  std::vector<LinkRow> out;
  for (const auto& [key, bars] : equal) {
    const Of of = std::get<Of>(key);
    auto devices = [&](std::size_t i) -> const std::vector<std::int32_t>& {
      return of == Of::Meetings ? links.meetings[i].devices : links.links[i].devices;
    };
    const std::size_t first = out.size();
    for (std::size_t i : bars) {
      auto fits = [&](const LinkRow& row) {
        return std::all_of(row.bars.begin(), row.bars.end(), [&](std::size_t other) {
          return devices(i).front() > devices(other).back() ||
                 devices(other).front() > devices(i).back();
        });
      };
      auto row = std::find_if(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(), fits);
      if (row == out.end()) row = out.insert(row, LinkRow{of, "", {}});
      row->bars.push_back(i);
    }
    for (std::size_t r = first; r < out.size(); ++r) {
      std::set<std::string> rates;
      for (std::size_t i : out[r].bars)
        if (of != Of::Meetings)
          rates.insert(
              short_rate_text(topology.resource_bytes_per_s(links.links[i].in(topology, 0))));
      out[r].label =
          fmt::format("{}{}{}", std::get<std::string>(key), text(std::get<PathClass>(key)),
                      rates.size() == 1 ? ", " + *rates.begin() : "");
    }
  }
  return out;
}

std::string short_rate_text(std::int64_t bytes_per_s) {
  std::string text = rate_text(bytes_per_s);
  std::size_t unit = text.find(' '), end = unit;
  while (text[end - 1] == '0') --end;
  if (text[end - 1] == '.') --end;
  return text.find('.') == std::string::npos ? text : text.erase(end, unit - end);
}

}  // namespace reshard::sim
