// SPDX-License-Identifier: BSD-3-Clause
// A node as a graph for Graphviz. A resource shared by several pairs is one vertex for both
// directions ("uplink0-out", "uplink0-in"); a resource of a single pair is an edge; if only ports
// join more than two devices, they meet in one vertex, the switch.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "sim/machine_files/writers/writers.h"

namespace reshard::sim {
namespace {

using Pair = std::pair<std::int32_t, std::int32_t>;

class DotWriter {
 public:
  explicit DotWriter(const TopologyDescription& description)
      : description_(description), table_(make_route_table(description)) {}

  std::string run() {
    out_ = fmt::format("graph \"{}\" {{\n  node [shape=box];\n", description_.name);
    for (std::int32_t device = 0; device < description_.devices; ++device)
      out_ += fmt::format("  gpu{};\n", device);
    sort_pairs();
    for (const auto& [line, pairs] : pairs_of_) draw_line(description_.routes[line], pairs);
    if (table_.rule_between >= 0) draw_network();
    for (const auto& [name, label] : vertices_)
      out_ += fmt::format("  \"{}\" [label=\"{}\", shape=ellipse];\n", name, label);
    for (const auto& [ends, label] : edges_)
      out_ += fmt::format("  \"{}\" -- \"{}\"{};\n", ends.first, ends.second,
                          label.empty() ? "" : fmt::format(" [label=\"{}\"]", label));
    return out_ + "}\n";
  }

 private:
  void sort_pairs() {
    auto class_of = [&](std::int32_t device) {
      return table_.class_of.empty() ? 0 : table_.class_of[device];
    };
    std::int32_t classes = 1;
    for (std::int32_t c : table_.class_of) classes = std::max(classes, c + 1);
    for (std::int32_t a = 0; a < description_.devices; ++a)
      for (std::int32_t b = 0; b < description_.devices; ++b)
        if (a != b) {
          std::int32_t line = table_.rule_within[class_of(a) * classes + class_of(b)];
          pairs_of_[to_index(line)].push_back({a, b});
          for (const Hop& hop : description_.routes[to_index(line)].rule.hops)
            if (hop.kind == Hop::Kind::SourceNodeShared) crossing_[hop.index].insert({a, b});
        }
  }

  static std::string gpu(std::int32_t device) { return fmt::format("gpu{}", device); }
  static std::string undirected(std::string name) {
    for (std::string_view end : {"-out", "-in"})
      if (name.ends_with(end)) return name.substr(0, name.size() - end.size());
    return name;
  }
  void edge(const std::string& a, const std::string& b, const std::string& label) {
    edges_.emplace(std::minmax(a, b), label);
  }
  // The first source port of a route.
  std::string port_text(const RouteRule& rule) const {
    for (const Hop& hop : rule.hops)
      if (hop.kind == Hop::Kind::SourceOut)
        return fmt::format("{} {}", description_.ports[hop.index].name,
                           rate_text(description_.ports[hop.index].out_bytes_per_s));
    return "";
  }
  std::string shared_vertex(const SharedResource& shared) {
    std::string name = undirected(shared.name);
    vertices_.emplace(name, fmt::format("{}\\n{}", name, rate_text(shared.bytes_per_s)));
    return name;
  }

  void draw_line(const RouteLine& line, const std::vector<Pair>& pairs) {
    std::vector<std::int32_t> shared;
    for (const Hop& hop : line.rule.hops)
      if (hop.kind == Hop::Kind::SourceNodeShared) shared.push_back(hop.index);
    std::string class_text(text(line.rule.path_class()));
    if (shared.empty()) return draw_ports(line, pairs);
    if (shared.size() == 1 && crossing_[shared[0]].size() == 1)
      return edge(
          gpu(pairs[0].first), gpu(pairs[0].second),
          fmt::format("{} {}", class_text, rate_text(description_.shared[shared[0]].bytes_per_s)));
    for (auto [a, b] : pairs) {
      std::string at = gpu(a);
      for (std::size_t i = 0; i < shared.size(); ++i) {
        std::string next = shared_vertex(description_.shared[shared[i]]);
        edge(at, next, i == 0 ? port_text(line.rule) : "");
        at = std::move(next);
      }
      edge(at, gpu(b), port_text(line.rule));
    }
  }

  void draw_ports(const RouteLine& line, const std::vector<Pair>& pairs) {
    std::map<std::int32_t, int> peers;
    for (auto [a, b] : pairs) ++peers[a];
    bool many =
        std::any_of(peers.begin(), peers.end(), [](auto entry) { return entry.second > 1; });
    std::string class_text(text(line.rule.path_class()));
    std::string hub = fmt::format("{} of {}", class_text, gpu(peers.begin()->first));
    for (auto [a, b] : pairs) {
      if (!many) {
        edge(gpu(a), gpu(b), fmt::format("{} {}", class_text, port_text(line.rule)));
        continue;
      }
      vertices_.emplace(hub, class_text);
      edge(gpu(a), hub, port_text(line.rule));
      edge(gpu(b), hub, port_text(line.rule));
    }
  }

  void draw_network() {
    const RouteRule& rule = description_.routes[to_index(table_.rule_between)].rule;
    std::string at;
    vertices_.emplace("network", "other nodes");
    for (const Hop& hop : rule.hops) {
      if (hop.kind != Hop::Kind::SourceNodeShared) continue;
      std::string next = shared_vertex(description_.shared[hop.index]);
      if (!at.empty()) edge(at, next, "");
      if (at.empty())
        for (std::int32_t device = 0; device < description_.devices; ++device)
          edge(gpu(device), next, port_text(rule));
      at = next;
    }
    if (!at.empty()) return edge(at, "network", "");
    for (std::int32_t device = 0; device < description_.devices; ++device)
      edge(gpu(device), "network", port_text(rule));
  }

  const TopologyDescription& description_;
  const RouteTable table_;
  std::map<std::size_t, std::vector<Pair>> pairs_of_;  // by route line
  std::map<std::int32_t, std::set<Pair>> crossing_;    // by shared resource
  std::map<std::string, std::string> vertices_;        // name -> label
  std::map<std::pair<std::string, std::string>, std::string> edges_;
  std::string out_;
};

}  // namespace

std::string to_dot(const TopologyDescription& description) {
  if (description.devices > kMaxWrittenDevices)
    throw InputError(fmt::format("topology {}: expected at most {} devices per node, found {}",
                                 description.name, kMaxWrittenDevices, description.devices));
  return DotWriter(description).run();
}

}  // namespace reshard::sim
