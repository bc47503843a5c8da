// SPDX-License-Identifier: BSD-3-Clause
// Derives parts from routes. A shared resource is classified by the routes that cross it: if they
// lead from devices S to devices D, and no device is in both, it is the uplink of a bridge above
// the smaller of S and D; otherwise it lies between sockets. Sockets are the two sides of the
// routes of class SYS. The result is a guess, which the writers check by deriving the routes again.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/base/units.h"
#include "sim/machine_files/writers/writers.h"

namespace reshard::sim {
namespace {

using Index = std::int32_t;
using Set = std::set<Index>;

// No bridge or socket limits a flow at this rate; sums of it fit 64 bits.
constexpr std::int64_t kWide = 1'000'000'000'000'000;

class Guess {
 public:
  explicit Guess(const TopologyDescription& description)
      : description_(description), topology_(one_node(description)), n_(description.devices) {}

  NodeParts run() {
    out_.name = description_.name;
    out_.machine = description_.machine;
    out_.socket_bytes_per_s = kWide;
    out_.gpus.resize(to_index(n_), {{}, 0});
    find_nvlinks();
    find_crossings();
    find_sockets();
    find_bridges();
    hang_up();
    add_nics();
    return std::move(out_);
  }

 private:
  static Topology one_node(const TopologyDescription& description) {
    TopologyDescription copy = description;
    copy.nodes = 1;
    copy.counts = TopologyDescription::Counts::Nothing;
    return build_topology(copy, std::nullopt);
  }
  const RouteRule& rule(Index a, Index b) const { return topology_.rule(Rank{a}, Rank{b}); }
  PathClass class_of(Index a, Index b) const { return rule(a, b).path_class(); }
  std::int64_t rate(const Hop& hop) const {
    return topology_.resource_bytes_per_s(topology_.resource(hop, Rank{0}, Rank{1}));
  }
  template <class Visit>
  void for_each_pair(Visit&& visit) const {
    for (Index a = 0; a < n_; ++a)
      for (Index b = 0; b < n_; ++b)
        if (a != b) visit(a, b);
  }

  void find_nvlinks() {
    for (Index a = 0; a < n_; ++a) {
      std::vector<Index> peers;
      for (Index b = 0; b < n_; ++b)
        if (a != b && class_of(a, b) == PathClass::NVL) peers.push_back(b);
      for (Index b : peers) {
        std::int64_t narrowest = kWide;
        bool own_port = false;
        for (const Hop& hop : rule(a, b).hops) {
          own_port = own_port || hop.kind == Hop::Kind::SourceOut;
          narrowest = std::min(narrowest, rate(hop));
        }
        if (own_port && peers.size() > 1)
          out_.gpus[to_index(a)].switch_bytes_per_s = narrowest;
        else if (a < b)
          out_.nvlinks.push_back({a, b, narrowest});
      }
    }
  }

  struct SharedHop {
    Set sources, destinations;
    std::int64_t rate;
  };

  // Finds the shared resources on PCIe routes, and the rate of each device's own link.
  void find_crossings() {
    for_each_pair([&](Index a, Index b) {
      if (class_of(a, b) <= PathClass::C2C) return;
      for (const Hop& hop : rule(a, b).hops) {
        if (hop.kind == Hop::Kind::SourceOut) out_.gpus[to_index(a)].pcie_bytes_per_s = rate(hop);
        if (hop.kind != Hop::Kind::SourceNodeShared) continue;
        SharedHop& crossing = crossings_[hop.index];
        crossing.sources.insert(a);
        crossing.destinations.insert(b);
        crossing.rate = rate(hop);
      }
    });
  }

  // Splits the devices into two sockets by two-colouring the routes of class SYS. If that fails,
  // each set of devices joined by nearer classes is a socket.
  void find_sockets() {
    std::vector<Index> near(to_index(n_));
    std::iota(near.begin(), near.end(), 0);
    for_each_pair([&](Index a, Index b) {
      PathClass path = class_of(a, b);
      if (path < PathClass::PIX || path > PathClass::PHB) return;
      Index from = std::max(near[to_index(a)], near[to_index(b)]),
            to = std::min(near[to_index(a)], near[to_index(b)]);
      std::replace(near.begin(), near.end(), from, to);
    });
    socket_.assign(to_index(n_), -1);
    bool two_sides = true;
    for (Index first = 0; first < n_; ++first) {
      if (socket_[to_index(first)] >= 0) continue;
      std::vector<Index> open{first};
      socket_[to_index(first)] = 0;
      while (!open.empty()) {
        Index a = open.back();
        open.pop_back();
        for (Index b = 0; b < n_; ++b) {
          bool other = a != b && class_of(a, b) == PathClass::SYS;
          if (a == b || (!other && near[to_index(a)] != near[to_index(b)])) continue;
          Index side = other ? 1 - socket_[to_index(a)] : socket_[to_index(a)];
          if (socket_[to_index(b)] < 0) {
            socket_[to_index(b)] = side;
            open.push_back(b);
          }
          two_sides = two_sides && socket_[to_index(b)] == side;
        }
      }
    }
    if (!two_sides) socket_ = near;
  }

  // Finds the sets of devices below one bridge, and the rates of the uplinks.
  void find_bridges() {
    for (const auto& entry : crossings_) {
      const auto& crossing = entry.second;
      bool apart =
          std::none_of(crossing.sources.begin(), crossing.sources.end(),
                       [&](Index device) { return crossing.destinations.contains(device); });
      if (!apart) {
        out_.socket_bytes_per_s = std::min(out_.socket_bytes_per_s, crossing.rate);
        continue;
      }
      const Set& below = crossing.sources.size() <= crossing.destinations.size()
                             ? crossing.sources
                             : crossing.destinations;
      narrow(below, crossing.rate);
    }
    // Devices joined by PIX, or by PIX and PXB, share a bridge even if it does not limit rates.
    for (Index a = 0; a < n_; ++a) {
      Set inner{a}, outer{a};
      for (Index b = 0; b < n_; ++b) {
        if (a == b) continue;
        if (class_of(a, b) == PathClass::PIX) inner.insert(b);
        if (class_of(a, b) == PathClass::PIX || class_of(a, b) == PathClass::PXB) outer.insert(b);
      }
      if (inner.size() > 1 || outer.size() > 1) narrow(inner, kWide);
      if (outer.size() > inner.size()) narrow(outer, kWide);
    }
  }

  void narrow(const Set& below, std::int64_t rate) {
    auto [entry, is_new] = bridges_.try_emplace(below, rate);
    if (!is_new) entry->second = std::min(entry->second, rate);
  }

  // Attaches larger sets first; each set hangs from the smallest set that contains it.
  void hang_up() {
    std::vector<std::pair<Set, std::int64_t>> sorted(bridges_.begin(), bridges_.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
    for (Index gpu = 0; gpu < n_; ++gpu)
      out_.gpus[to_index(gpu)].place = {-1, socket_[to_index(gpu)]};
    for (const auto& [set, rate] : sorted) {
      std::int64_t all = 0;
      for (Index gpu : set) all += out_.gpus[to_index(gpu)].pcie_bytes_per_s;
      out_.bridges.push_back({out_.gpus[to_index(*set.begin())].place, std::min(rate, all)});
      for (Index gpu : set)
        out_.gpus[to_index(gpu)].place.bridge = static_cast<Index>(out_.bridges.size()) - 1;
    }
    std::int64_t all = 0;
    for (const NodeParts::Gpu& gpu : out_.gpus) all += gpu.pcie_bytes_per_s;
    if (all > 0) out_.socket_bytes_per_s = std::min(out_.socket_bytes_per_s, all);
    // If NVLink joins all GPUs, nothing is known about PCIe: each GPU gets a bridge with its NIC.
    if (!sorted.empty() || !crossings_.empty()) return;
    for (NodeParts::Gpu& gpu : out_.gpus) {
      if (gpu.pcie_bytes_per_s > 0) return;
      out_.bridges.push_back({gpu.place, 0});
      gpu.place.bridge = static_cast<Index>(out_.bridges.size()) - 1;
    }
  }

  void add_nics() {
    std::int64_t pool = kWide;
    const RouteLine* between = nullptr;
    for (const RouteLine& route : description_.routes)
      if (route.where == RouteLine::Where::Between) between = &route;
    if (between == nullptr) return;
    bool own = true;
    for (const Hop& hop : between->rule.hops) {
      if (hop.kind == Hop::Kind::SourceOut)
        pool = std::min(pool, description_.ports[hop.index].out_bytes_per_s);
      if (hop.kind != Hop::Kind::SourceNodeShared) continue;
      own = false;
      pool = std::min(pool, description_.shared[hop.index].bytes_per_s);
    }
    std::int64_t each = std::min(pool, between->rule.cap_bytes_per_s.value_or(pool));
    Index count = own ? n_ : static_cast<Index>(std::clamp<std::int64_t>(pool / each, 1, n_));
    if (own) each = pool;
    if (!own && each * count != pool) {
      each = pool;
      count = 1;
    }
    for (Index i = 0; i < count; ++i)
      out_.nics.push_back({out_.gpus[to_index(i * n_ / count)].place, each});
  }

  const TopologyDescription& description_;
  const Topology topology_;
  const Index n_;
  std::map<Index, SharedHop> crossings_;  // by shared resource
  std::vector<Index> socket_;             // by device
  std::map<Set, std::int64_t> bridges_;
  NodeParts out_;
};

}  // namespace

NodeParts parts_of(const TopologyDescription& description) { return Guess(description).run(); }

}  // namespace reshard::sim
