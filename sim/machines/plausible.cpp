// SPDX-License-Identifier: BSD-3-Clause
#include "sim/machines/plausible.h"
#include "core/topology/machine_lines.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/core.h>

#include "core/base/units.h"
#include "sim/machine_files/known_parts.h"

namespace reshard::sim {
namespace {

constexpr std::int64_t kSlowest = 100'000'000;    // bytes/s; a rate that lacks its unit is slower
constexpr std::int64_t kLongest = 1'000'000'000;  // ps, latency of a first byte
constexpr std::int64_t kFastestNic = 200'000'000'000;  // 1.6 Tb/s
constexpr std::int32_t kComparedDevices = 256;         // per node, pair by pair

std::int64_t percent(std::int64_t of, std::int64_t percents) { return of / 100 * percents; }

class Doubter {
 public:
  Doubter(const TopologyDescription& description, const std::string& file)
      : machine_(description), file_(file) {}

  std::vector<std::string> run() {
    for (const RouteLine& route : machine_.routes) look_at(route);
    look_at_links();
    look_at_machine();
    compare_classes();
    if (machine_.devices <= kComparedDevices) compare_devices();
    return std::move(out_);
  }

 private:
  void doubt(const std::string& what) { out_.push_back(fmt::format("{}: {}", file_, what)); }
  void doubt(const RouteLine& route, const std::string& what) {
    if (route.line > 0)
      out_.push_back(fmt::format("{}:{}: {}", file_, route.line, what));
    else
      doubt(fmt::format("route of class {}: {}", text(route.rule.path_class()), what));
  }

  std::string name_of(const Hop& hop) const {
    switch (hop.kind) {
      case Hop::Kind::SourceOut:
      case Hop::Kind::DestinationIn:
        return "port " + machine_.ports[hop.index].name;
      case Hop::Kind::Fabric:
        return "fabric " + machine_.fabric[hop.index].name;
      default:
        return "shared " + machine_.shared[hop.index].name;
    }
  }
  std::int64_t rate_of(const Hop& hop) const {
    switch (hop.kind) {
      case Hop::Kind::SourceOut:
        return machine_.ports[hop.index].out_bytes_per_s;
      case Hop::Kind::DestinationIn:
        return machine_.ports[hop.index].in_bytes_per_s;
      case Hop::Kind::Fabric:
        return machine_.fabric[hop.index].bytes_per_s;
      default:
        return machine_.shared[hop.index].bytes_per_s;
    }
  }
  // Rate of a route's links, without its cap.
  std::int64_t carried(const RouteRule& rule) const {
    std::int64_t least = kMaxBytes;
    for (const Hop& hop : rule.hops) least = std::min(least, rate_of(hop));
    return least;
  }
  std::int64_t rate(const RouteRule& rule) const {
    return std::min(carried(rule), rule.cap_bytes_per_s.value_or(kMaxBytes));
  }

  // The highest possible rate of a GPU's links of a class, and its description.
  std::pair<std::int64_t, std::string> limit(PathClass path_class) const {
    const std::optional<std::int32_t>& sm = machine_.machine.compute_capability;
    const GpuClass& gpu = gpu_class(sm.value_or(103));
    std::string of = sm ? fmt::format("GPUs of sm{}", *sm) : std::string("any GPU");
    if (path_class <= PathClass::NVB)
      return {gpu.nvlink_bytes_per_s * gpu.nvlinks, "all NVLinks of " + of};
    if (path_class == PathClass::NET) return {kFastestNic, "any NIC"};
    return {pcie_line_bytes_per_s(gpu.pcie_generation, 16),
            fmt::format("16 lanes of PCIe generation {}, as in {}", gpu.pcie_generation, of)};
  }

  void look_at(const RouteLine& route) {
    const RouteRule& rule = route.rule;
    if (rule.latency_ps > kLongest)
      doubt(route, fmt::format("a latency of {} is above 1 ms", duration_text(rule.latency_ps)));
    if (rule.cap_bytes_per_s && *rule.cap_bytes_per_s > carried(rule))
      doubt(route, fmt::format("a cap of {} is above the {} that its links carry",
                               rate_text(*rule.cap_bytes_per_s), rate_text(carried(rule))));
    auto [most, whose] = limit(rule.path_class());
    bool nvlink = rule.path_class() <= PathClass::NVB;
    if (nvlink && most == 0)
      doubt(route, fmt::format("GPUs of sm{} have no NVLink",
                               machine_.machine.compute_capability.value_or(0)));
    else if (rate(rule) > most + percent(most, 1))
      doubt(route,
            fmt::format("{} is above the {} of {}", rate_text(rate(rule)), rate_text(most), whose));
    bool by_nvlink = rule.transport == Transport::NVLink;
    if (rule.stated_class && nvlink != by_nvlink)
      doubt(route, fmt::format("class {} does not match transport {}", text(rule.path_class()),
                               text(rule.transport)));
    if (rule.path_class() == PathClass::NET && route.where != RouteLine::Where::Between)
      doubt(route, "a network connects devices of one node");
    look_at_nic(route);
  }

  // A flow uses one NIC, and a NIC one slot.
  void look_at_nic(const RouteLine& route) {
    if (route.where != RouteLine::Where::Between || !machine_.machine.compute_capability) return;
    int generation = gpu_class(*machine_.machine.compute_capability).pcie_generation;
    std::int64_t slot = pcie_line_bytes_per_s(generation, 16);
    if (rate(route.rule) > slot)
      doubt(route, fmt::format("a NIC of {} is faster than a slot of PCIe generation {}, which "
                               "carries {}",
                               rate_text(rate(route.rule)), generation, rate_text(slot)));
  }

  void look_at_links() {
    std::set<std::string> crossed;
    for (const RouteLine& route : machine_.routes)
      for (const Hop& hop : route.rule.hops) crossed.insert(name_of(hop));
    auto look = [&](const std::string& name, std::int64_t bytes_per_s) {
      if (bytes_per_s < kSlowest)
        doubt(fmt::format("{}: {} is slow for a link; rates without a unit are in bytes per second",
                          name, rate_text(bytes_per_s)));
      if (crossed.insert(name).second) doubt(name + ": no route crosses it");
    };
    for (const Port& port : machine_.ports) {
      look("port " + port.name, std::min(port.out_bytes_per_s, port.in_bytes_per_s));
      auto [least, most] = std::minmax(port.out_bytes_per_s, port.in_bytes_per_s);
      if (least < percent(most, 50))
        doubt(fmt::format("port {}: {} out and {} in differ too much for one link", port.name,
                          rate_text(port.out_bytes_per_s), rate_text(port.in_bytes_per_s)));
    }
    for (const SharedResource& shared : machine_.shared)
      look("shared " + shared.name, shared.bytes_per_s);
    for (const SharedResource& shared : machine_.fabric)
      look("fabric " + shared.name, shared.bytes_per_s);
  }

  void look_at_machine() {
    const Machine& machine = machine_.machine;
    if (machine.nvls && machine.compute_capability && *machine.compute_capability < 90)
      doubt(fmt::format("reduces nvlink: NVLink switches of GPUs of sm{} cannot reduce",
                        *machine.compute_capability));
    for (std::size_t i = 0; i < machine.figures.size(); ++i)
      if (figure_rows()[i].name == "nccl.efficiency" || figure_rows()[i].name == "nccl.nvls")
        if (machine.figures[i].value_or(0) > kRatioOne)
          doubt(fmt::format("figure {}: {} is more than the whole rate", figure_rows()[i].name,
                            figure_text(figure_rows()[i].unit, *machine.figures[i])));
  }

  // A better class must not be slower. NICs may outrun PCIe between GPUs, but not NVLink.
  void compare_classes() {
    struct Best {
      std::int64_t rate = 0, latency_ps = kMaxDurationPs;
    };
    std::map<PathClass, Best> best;
    for (const RouteLine& route : machine_.routes) {
      Best& mine = best[route.rule.path_class()];
      mine.rate = std::max(mine.rate, rate(route.rule));
      mine.latency_ps = std::min(mine.latency_ps, route.rule.latency_ps);
    }
    for (auto a = best.begin(); a != best.end(); ++a)
      for (auto b = std::next(a); b != best.end(); ++b) {
        if (b->first == PathClass::NET && a->first != PathClass::NVL) continue;
        if (percent(b->second.rate, 80) > a->second.rate)
          doubt(fmt::format("class {} achieves {}, more than class {} with {}", text(b->first),
                            rate_text(b->second.rate), text(a->first), rate_text(a->second.rate)));
        if (b->second.latency_ps < a->second.latency_ps / 2)
          doubt(fmt::format("class {} has a latency of {}, less than class {} with {}",
                            text(b->first), duration_text(b->second.latency_ps), text(a->first),
                            duration_text(a->second.latency_ps)));
      }
  }

  // Checks that both directions of a pair are equal, and that all devices have equally many
  // NVLinks.
  void compare_devices() {
    TopologyDescription one = machine_;
    one.nodes = 1;
    one.counts = TopologyDescription::Counts::Nothing;
    Topology topology = build_topology(one, std::nullopt);
    std::vector<std::int64_t> linked(to_index(machine_.devices), 0);
    std::set<std::pair<std::size_t, std::size_t>> reported;
    for (std::int32_t a = 0; a < machine_.devices; ++a) {
      std::set<ResourceId> counted;
      for (std::int32_t b = 0; b < machine_.devices; ++b) {
        if (a == b) continue;
        const RouteRule &there = topology.rule(Rank{a}, Rank{b}),
                        &back = topology.rule(Rank{b}, Rank{a});
        if (there.path_class() == PathClass::NVL) {
          ResourceId first = topology.resource(there.hops.front(), Rank{a}, Rank{b});
          if (counted.insert(first).second)
            linked[to_index(a)] +=
                std::min(topology.resource_bytes_per_s(first), kMaxBytes - linked[to_index(a)]);
        }
        if (a > b) continue;
        auto index = [&](const RouteRule& rule) {
          return to_index(&rule - topology.node().rules.data());
        };
        bool differ = there.path_class() != back.path_class() || rate(there) != rate(back) ||
                      there.latency_ps != back.latency_ps;
        if (differ && reported.insert(std::minmax({index(there), index(back)})).second)
          doubt(
              fmt::format("devices {} and {}: {} at {} with latency {} one way, but {} at {} with "
                          "latency {} back",
                          a, b, text(there.path_class()), rate_text(rate(there)),
                          duration_text(there.latency_ps), text(back.path_class()),
                          rate_text(rate(back)), duration_text(back.latency_ps)));
      }
    }
    std::int64_t most = *std::max_element(linked.begin(), linked.end());
    for (std::int32_t device = 0; device < machine_.devices; ++device)
      if (linked[to_index(device)] != most)
        doubt(fmt::format("device {}: NVLinks of {} in all, but another has {}", device,
                          rate_text(linked[to_index(device)]), rate_text(most)));
  }

  const TopologyDescription& machine_;
  const std::string& file_;
  std::vector<std::string> out_;
};

}  // namespace

std::vector<std::string> doubts_about(const TopologyDescription& description,
                                      const std::string& file) {
  return Doubter(description, file).run();
}

}  // namespace reshard::sim
