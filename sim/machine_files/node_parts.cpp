// SPDX-License-Identifier: BSD-3-Clause
// Derives routes from parts. GPUs that NVLink joins use nothing else. All other pairs use PCIe: up
// the bridges of one GPU, between sockets, down to the other. GPUs below the same bridges are
// equivalent, so a route line joins two *seats*, which are sets of such GPUs, rather than two GPUs.
//
// A bridge above only one GPU is part of that GPU's own link; one that carries all that its GPUs
// can send never limits rates and only affects the class of a path; the others are resources.
#include "sim/machine_files/node_parts.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "sim/machine_files/known_parts.h"
#include "sim/machine_files/used_nics.h"

namespace reshard::sim {
namespace {

using Where = RouteLine::Where;
using Index = std::int32_t;

Index count_of(const auto& list) { return static_cast<Index>(list.size()); }

// A set of GPUs with the same position on PCIe.
struct Seat {
  std::vector<Index> above;   // bridges above several GPUs, from the GPU up
  std::vector<Index> narrow;  // those of them that are resources: indices of Describer::uplinks_
  Index single = 0;           // number of bridges above this GPU alone
  std::int32_t socket = 0;
  std::vector<Index> members;  // GPUs
  Index group = -1;
};

class Describer {
 public:
  explicit Describer(const NodeParts& parts) : parts_(parts), gpus_(count_of(parts.gpus)) {}

  TopologyDescription run() {
    out_.name = parts_.name;
    out_.devices = gpus_;
    out_.machine = parts_.machine;
    out_.assumed = parts_.assumed;
    if (!join_by_switch()) {
      join_by_links();
      join_by_pcie();
    }
    join_nodes();
    drop_untaken();
    drop_uncrossed(out_);
    assume_latencies(out_);
    return std::move(out_);
  }

 private:
  RouteLine line(Where where, std::vector<Hop> hops, Transport transport, PathClass path_class) {
    RouteLine route;
    route.where = where;
    route.rule = {std::move(hops), usual_latency_ps(path_class), {}, transport, {}};
    if (route.rule.path_class() != path_class) route.rule.stated_class = path_class;
    return route;
  }

  Index add_port(std::string name, std::int64_t bytes_per_s) {
    out_.ports.push_back({std::move(name), bytes_per_s, bytes_per_s});
    return count_of(out_.ports) - 1;
  }
  Index add_shared(std::string name, std::int64_t bytes_per_s) {
    out_.shared.push_back({std::move(name), bytes_per_s});
    return count_of(out_.shared) - 1;
  }
  Index add_group(std::string name, std::vector<Index> devices) {
    out_.groups.push_back({std::move(name), std::move(devices)});
    return count_of(out_.groups) - 1;
  }
  static std::vector<Hop> ports_of(Index port) {
    return {{Hop::Kind::SourceOut, port}, {Hop::Kind::DestinationIn, port}};
  }

  // ---- NVLink

  // Returns whether switches join all GPUs. If some GPUs have fewer links, all get the lowest rate.
  bool join_by_switch() {
    std::vector<Index> joined;
    std::int64_t least = 0;
    for (Index gpu = 0; gpu < gpus_; ++gpu)
      if (std::int64_t rate = parts_.gpus[to_index(gpu)].switch_bytes_per_s; rate > 0) {
        least = joined.empty() ? rate : std::min(least, rate);
        joined.push_back(gpu);
      }
    if (joined.size() < 2) return false;
    std::vector<Hop> hops = ports_of(add_port("nvlink", least));
    bool all = count_of(joined) == gpus_;
    out_.routes.push_back(line(all ? Where::Within : Where::Groups, std::move(hops),
                               Transport::NVLink, PathClass::NVL));
    if (!all)
      out_.routes.back().a = out_.routes.back().b = add_group("nvswitch", std::move(joined));
    return all;
  }

  // NVLink bridges that join GPUs in pairs become one port; otherwise each link is a resource.
  void join_by_links() {
    std::vector<int> partners(to_index(gpus_), 0);
    bool pairs = !parts_.nvlinks.empty() && out_.ports.empty();
    for (const NodeParts::NvLink& link : parts_.nvlinks) {
      pairs = pairs && ++partners[to_index(link.a)] == 1 && ++partners[to_index(link.b)] == 1 &&
              link.bytes_per_s == parts_.nvlinks.front().bytes_per_s;
    }
    if (pairs) {
      RouteLine route =
          line(Where::Pairs, ports_of(add_port("nvlink", parts_.nvlinks.front().bytes_per_s)),
               Transport::NVLink, PathClass::NVL);
      for (const NodeParts::NvLink& link : parts_.nvlinks) route.pairs.push_back({link.a, link.b});
      out_.routes.push_back(std::move(route));
      return;
    }
    std::map<Index, Index> group_of;
    auto group = [&](Index gpu) {
      auto [entry, is_new] = group_of.try_emplace(gpu, 0);
      if (is_new) entry->second = add_group(fmt::format("gpu{}", gpu), {gpu});
      return entry->second;
    };
    for (const NodeParts::NvLink& link : parts_.nvlinks)
      for (auto [from, to] : {std::pair{link.a, link.b}, std::pair{link.b, link.a}}) {
        Index shared = add_shared(fmt::format("link{}{}{}", from, gpus_ > 10 ? "-" : "", to),
                                  link.bytes_per_s);
        RouteLine route = line(Where::FromTo, {{Hop::Kind::SourceNodeShared, shared}},
                               Transport::NVLink, PathClass::NVL);
        route.a = group(from);
        route.b = group(to);
        out_.routes.push_back(std::move(route));
      }
  }

  // ---- PCIe

  struct Bridge {
    std::vector<Index> gpus;             // below it, at any depth
    std::int64_t below_bytes_per_s = 0;  // the most that these can send
    std::int64_t bytes_per_s = 0;
    bool matters = false;
    Index uplink = -1;  // index in uplinks_ if it is a resource
  };
  struct Uplink {
    Index out, in;  // shared resources
  };

  void join_by_pcie() {
    find_bridges();
    std::int64_t fastest = 0;
    for (std::int64_t own : own_) fastest = std::max(fastest, own);
    port_ = add_port("pcie", fastest);
    for (Index gpu = 0; gpu < gpus_; ++gpu) sit(gpu, own_[to_index(gpu)] < fastest);
    name_sockets();
    name_seats();
    for (const Seat& from : seats_)
      for (const Seat& to : seats_) join_seats(from, to);
  }

  std::vector<Index> bridges_over(Index gpu) const {
    std::vector<Index> out;
    for (Index at = parts_.gpus[to_index(gpu)].place.bridge; at >= 0;
         at = parts_.bridges[to_index(at)].above.bridge)
      out.push_back(at);
    return out;
  }

  // Finds the rate of each GPU's own link, and the bridges too slow for the GPUs below.
  void find_bridges() {
    bridges_.resize(parts_.bridges.size());
    for (Index gpu = 0; gpu < gpus_; ++gpu)
      for (Index bridge : bridges_over(gpu)) bridges_[to_index(bridge)].gpus.push_back(gpu);
    for (Index gpu = 0; gpu < gpus_; ++gpu) {
      std::int64_t own = parts_.gpus[to_index(gpu)].pcie_bytes_per_s;
      for (Index bridge : bridges_over(gpu))
        if (bridges_[to_index(bridge)].gpus.size() == 1)
          own = std::min(own, parts_.bridges[to_index(bridge)].bytes_per_s);
      own_.push_back(own);
      for (Index bridge : bridges_over(gpu)) bridges_[to_index(bridge)].below_bytes_per_s += own;
    }
    for (Index i = 0; i < count_of(bridges_); ++i)
      bridges_[to_index(i)].bytes_per_s = parts_.bridges[to_index(i)].bytes_per_s;
    // If several bridges are above the same GPUs, only the uppermost counts, at the lowest rate. A
    // bridge has a higher index than the one above it.
    for (Index i = count_of(bridges_) - 1; i >= 0; --i) {
      Bridge& bridge = bridges_[to_index(i)];
      bridge.matters = bridge.gpus.size() > 1 && count_of(bridge.gpus) < gpus_ &&
                       bridge.bytes_per_s < bridge.below_bytes_per_s;
      Index above = parts_.bridges[to_index(i)].above.bridge;
      if (above < 0 || bridges_[to_index(above)].gpus != bridge.gpus) continue;
      std::int64_t& upper = bridges_[to_index(above)].bytes_per_s;
      upper = std::min(upper, bridge.bytes_per_s);
      bridge.matters = false;
    }
    for (Bridge& bridge : bridges_)
      if (bridge.matters)
        bridge.uplink = add_uplink(fmt::format("uplink{}", uplinks_.size()), bridge.bytes_per_s);
  }

  Index add_uplink(const std::string& name, std::int64_t bytes_per_s) {
    Index out = add_shared(name + "-out", bytes_per_s);
    uplinks_.push_back({out, add_shared(name + "-in", bytes_per_s)});
    return count_of(uplinks_) - 1;
  }

  void sit(Index gpu, bool slow) {
    Seat seat;
    seat.socket = parts_.gpus[to_index(gpu)].place.socket;
    // A link slower than those of other GPUs is a separate resource.
    if (slow) seat.narrow.push_back(add_uplink(fmt::format("slot{}", gpu), own_[to_index(gpu)]));
    for (Index bridge : bridges_over(gpu)) {
      const Bridge& at = bridges_[to_index(bridge)];
      if (at.gpus.size() < 2) {
        ++seat.single;
        continue;
      }
      seat.above.push_back(bridge);
      if (at.uplink >= 0) seat.narrow.push_back(at.uplink);
    }
    auto found = std::find_if(seats_.begin(), seats_.end(), [&](const Seat& other) {
      return std::tie(other.socket, other.above, other.narrow, other.single) ==
             std::tie(seat.socket, seat.above, seat.narrow, seat.single);
    });
    if (found == seats_.end()) found = seats_.insert(seats_.end(), std::move(seat));
    found->members.push_back(gpu);
  }

  // Adds the links between sockets that GPUs can fill. Sockets are numbered in ascending order.
  void name_sockets() {
    std::map<std::int32_t, std::int64_t> sends;
    std::map<std::int32_t, std::vector<Index>> members;
    for (const Seat& seat : seats_) {
      std::int64_t all = 0, narrowest = kMaxBytes;
      for (Index gpu : seat.members) {
        all += own_[to_index(gpu)];
        members[seat.socket].push_back(gpu);
      }
      for (Index uplink : seat.narrow)
        narrowest = std::min(narrowest, out_.shared[uplinks_[to_index(uplink)].out].bytes_per_s);
      sends[seat.socket] += std::min(all, narrowest);
    }
    if (members.size() < 2) return;
    Index number = 0;
    for (auto& [socket, gpus] : members) {
      std::sort(gpus.begin(), gpus.end());
      socket_group_[socket] = add_group(fmt::format("socket{}", number++), gpus);
    }
    number = 0;
    for (auto a = sends.begin(); a != sends.end(); ++a)
      for (auto b = std::next(a); b != sends.end(); ++b)
        if (parts_.socket_bytes_per_s < 2 * std::min(a->second, b->second))
          socket_links_[{a->first, b->first}] =
              add_shared(sends.size() == 2 ? std::string("socket-link")
                                           : fmt::format("socket-link{}", number++),
                         parts_.socket_bytes_per_s);
  }

  void name_seats() {
    Index number = 0;
    for (Seat& seat : seats_) {
      auto socket = socket_group_.find(seat.socket);
      bool whole =
          socket != socket_group_.end() && out_.groups[socket->second].devices == seat.members;
      seat.group =
          whole ? socket->second : add_group(fmt::format("switch{}", number++), seat.members);
    }
  }

  // The class follows from the number of bridges on the path.
  PathClass class_between(const Seat& from, const Seat& to) const {
    if (from.socket != to.socket) return PathClass::SYS;
    for (std::size_t i = 0; i < from.above.size(); ++i) {
      auto common = std::find(to.above.begin(), to.above.end(), from.above[i]);
      if (common == to.above.end()) continue;
      std::size_t below = i + to_index(common - to.above.begin());
      return below + to_index(from.single + to.single) == 0 ? PathClass::PIX : PathClass::PXB;
    }
    return PathClass::PHB;
  }

  void join_seats(const Seat& from, const Seat& to) {
    if (&from == &to && from.members.size() < 2) return;
    std::vector<Hop> hops{{Hop::Kind::SourceOut, port_}};
    auto crosses = [&](const Seat& of, const Seat& other, bool out) {
      std::vector<Hop> crossed;
      for (Index uplink : of.narrow)
        if (std::find(other.narrow.begin(), other.narrow.end(), uplink) == other.narrow.end())
          crossed.push_back({Hop::Kind::SourceNodeShared,
                             out ? uplinks_[to_index(uplink)].out : uplinks_[to_index(uplink)].in});
      return crossed;
    };
    std::vector<Hop> up = crosses(from, to, true), down = crosses(to, from, false);
    hops.insert(hops.end(), up.begin(), up.end());
    auto link = socket_links_.find(std::minmax(from.socket, to.socket));
    if (link != socket_links_.end()) hops.push_back({Hop::Kind::SourceNodeShared, link->second});
    hops.insert(hops.end(), down.rbegin(), down.rend());
    hops.push_back({Hop::Kind::DestinationIn, port_});
    bool both_ways = up.empty() && down.empty();
    if (both_ways && from.group > to.group)
      return;  // covered by the line of the opposite
               // direction
    RouteLine route = line(both_ways ? Where::Groups : Where::FromTo, std::move(hops),
                           Transport::PCIe, class_between(from, to));
    route.a = from.group;
    route.b = to.group;
    out_.routes.push_back(std::move(route));
  }

  // ---- the network

  void join_nodes() {
    UsedNics used = used_nics(parts_);
    const std::vector<std::int64_t>& nics = used.rates;
    if (nics.empty()) return;
    out_.assumed.insert(out_.assumed.end(), used.assumed.begin(), used.assumed.end());
    std::int64_t sum = 0, fastest = 0;
    for (std::int64_t rate : nics) {
      sum = std::min(kMaxBytes, sum + std::min(rate, kMaxBytes - sum));
      fastest = std::max(fastest, rate);
    }
    out_.counts = TopologyDescription::Counts::Nodes;
    out_.assumed.push_back("network: every NIC reaches every other at its full rate");
    // A flow uses one NIC, whatever a GPU's share of them all is.
    if (count_of(nics) >= gpus_) {
      std::int64_t each = std::clamp<std::int64_t>(sum / gpus_, 1, fastest);
      out_.routes.push_back(line(Where::Between, ports_of(add_port("nic", each)),
                                 Transport::Network, PathClass::NET));
      return;
    }
    std::vector<Hop> hops{{Hop::Kind::SourceNodeShared, add_shared("nics-out", sum)},
                          {Hop::Kind::DestinationNodeShared, add_shared("nics-in", sum)}};
    out_.routes.push_back(
        line(Where::Between, std::move(hops), Transport::Network, PathClass::NET));
    if (fastest < sum) out_.routes.back().rule.cap_bytes_per_s = fastest;
  }

  // Drops lines that apply to no pair because earlier lines do.
  void drop_untaken() {
    RouteTable table = make_route_table(out_);
    std::vector<RouteLine> kept;
    for (std::size_t i = 0; i < out_.routes.size(); ++i)
      if (table.too_many_classes || table.taken[i]) kept.push_back(std::move(out_.routes[i]));
    out_.routes = std::move(kept);
  }

  const NodeParts& parts_;
  const Index gpus_;
  Index port_ = -1;
  std::vector<Bridge> bridges_;
  std::vector<std::int64_t> own_;  // by GPU: rate of its own link
  std::vector<Uplink> uplinks_;
  std::vector<Seat> seats_;
  std::map<std::int32_t, Index> socket_group_;
  std::map<std::pair<std::int32_t, std::int32_t>, Index> socket_links_;
  TopologyDescription out_;
};

}  // namespace

TopologyDescription describe(const NodeParts& parts, const std::string& file) {
  TopologyDescription out = Describer(parts).run();
  require_sayable(out, file);
  return out;
}

}  // namespace reshard::sim
