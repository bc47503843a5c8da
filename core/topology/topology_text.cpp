// SPDX-License-Identifier: BSD-3-Clause
// The reader only collects the description. Checks across lines (does every pair have a route?) use
// the route table at the end, so that reading and building cannot disagree.
#include "core/topology/topology_text.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/topology/machine_lines.h"

namespace reshard {
namespace {

constexpr std::array<std::string_view, 12> kReserved{"within", "between",     "pairs", "to",
                                                     "via",    "latency",     "cap",   "transport",
                                                     "source", "destination", "in",    "out"};
// Indexed by TopologyDescription::Counts.
constexpr std::array<std::string_view, 3> kCounts{"nodes", "devices", "nothing"};
constexpr std::array<Transport, 4> kTransports{Transport::NVLink, Transport::PCIe, Transport::Host,
                                               Transport::Network};

template <typename Part>
std::optional<std::int32_t> find(const std::vector<Part>& parts, std::string_view name) {
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i].name == name) return static_cast<std::int32_t>(i);
  return std::nullopt;
}

class Reader : private MachineLines {
 public:
  using MachineLines::MachineLines;

  TopologyDescription read() {
    bool titled = false;
    while (next_line()) {
      std::string_view key = token();
      if (key.empty()) continue;
      if (!titled) {
        if (key != "reshard-topology" || token() != "1")
          fail("'reshard-topology 1' as the first line", line_);
        titled = true;
      } else {
        read_line(key);
      }
      if (std::string_view rest = token(); !rest.empty()) fail("the end of the line", rest);
    }
    if (!titled) contradict("'reshard-topology 1' as the first line", "the end");
    check();
    return std::move(out_);
  }

 private:
  // A name that no port, shared or fabric resource or group has yet.
  std::string fresh_name() {
    std::string_view word = token();
    if (!is_name(word)) fail("a name (letters, digits, '_', '-', at most 64)", word);
    if (std::find(kReserved.begin(), kReserved.end(), word) != kReserved.end())
      fail("a name that is not a keyword of the format", word);
    if (find(out_.ports, word) || find(out_.shared, word) || find(out_.fabric, word) ||
        find(out_.groups, word))
      fail("a name not used before", word);
    return std::string(word);
  }

  template <typename List>
  void check_room(const List& list, std::size_t limit, std::string_view what) const {
    if (list.size() >= limit) fail(fmt::format("at most {} {}", limit, what), line_);
  }

  // "3" or "0-3", devices of a node: the first and the last.
  std::pair<std::int32_t, std::int32_t> device_range(std::string_view word, bool needs_two) {
    std::string where = place();
    Cursor cursor(word, where);
    auto device = [&] {
      return static_cast<std::int32_t>(cursor.integer("a device of the node", 0, out_.devices - 1));
    };
    std::int32_t first = device(), last = first;
    if (needs_two || cursor.peek() == '-') {
      cursor.expect("-");
      last = device();
    }
    cursor.expect_end();
    return {first, last};
  }

  void count_members(std::int64_t more) {
    members_ += to_index(more);
    if (members_ > kMaxGroupMembers) fail("at most 2^20 members of groups and pairs in all", line_);
  }

  // ---- single lines ----

  void read_line(std::string_view key) {
    if (key == "name") return read_name();
    if (key == "devices") return read_devices();
    if (key == "nodes") return read_nodes();
    if (key == "count") return read_count();
    if (read_machine_line(key, out_.machine)) return;
    if (key == "port") return read_port();
    if (key == "shared") return read_shared(out_.shared, kMaxShared);
    if (key == "fabric") return read_shared(out_.fabric, kMaxFabric);
    if (key == "group") return read_group();
    if (key == "route") return read_route();
    fail(
        "name, devices, nodes, count, gpu, cpu, transport, reduces, figure, port, shared, fabric, "
        "group or route",
        key);
  }

  void once(bool& seen, std::string_view key) {
    if (seen) contradict(fmt::format("one line '{}'", key), "a second one");
    seen = true;
  }

  void read_name() {
    once(has_name_, "name");
    std::string_view word = token();
    if (!is_name(word)) fail("a name (letters, digits, '_', '-', at most 64)", word);
    out_.name = word;
  }

  void read_devices() {
    once(has_devices_, "devices");
    out_.devices = static_cast<std::int32_t>(integer("devices per node", 1, kMaxRanks));
  }

  void read_nodes() {
    once(has_nodes_, "nodes");
    out_.nodes = static_cast<std::int32_t>(integer("nodes", 1, kMaxRanks));
  }

  void read_count() {
    once(has_count_, "count");
    std::string_view word = token();
    auto found = std::find(kCounts.begin(), kCounts.end(), word);
    if (found == kCounts.end()) fail("nodes, devices or nothing", word);
    out_.counts = static_cast<TopologyDescription::Counts>(found - kCounts.begin());
  }

  // port NAME RATE [in RATE]
  void read_port() {
    check_room(out_.ports, kMaxPorts, "ports");
    Port port{fresh_name(), rate(), 0};
    port.in_bytes_per_s = port.out_bytes_per_s;
    if (std::string_view word = token(); word == "in")
      port.in_bytes_per_s = rate();
    else if (!word.empty())
      fail("'in RATE' or the end of the line", word);
    out_.ports.push_back(std::move(port));
  }

  void read_shared(std::vector<SharedResource>& list, std::size_t limit) {
    check_room(list, limit, "of these lines");
    std::string name = fresh_name();
    list.push_back({std::move(name), rate()});
  }

  void need_devices() const {
    if (!has_devices_) fail("the line 'devices' before this one", line_);
  }

  // group NAME 0-3 8-11
  void read_group() {
    need_devices();
    check_room(out_.groups, kMaxGroups, "groups");
    DeviceGroup group{fresh_name(), {}};
    for (std::string_view word = token(); !word.empty(); word = token()) {
      auto [first, last] = device_range(word, false);
      if (first > last || (!group.devices.empty() && first <= group.devices.back()))
        fail("devices in ascending order, each once", word);
      count_members(std::int64_t{last} - first + 1);
      for (std::int32_t device = first; device <= last; ++device) group.devices.push_back(device);
    }
    if (group.devices.empty()) fail("devices such as 0-3", "");
    out_.groups.push_back(std::move(group));
  }

  // route WHERE via HOPS latency TIME [cap RATE] transport WORD [class WORD]
  void read_route() {
    need_devices();
    check_room(out_.routes, kMaxRoutes, "routes");
    RouteLine route;
    route.line = line_number_;
    read_where(route);
    read_hops(route);
    route.rule.latency_ps = parse_duration_ps(token(), place());
    std::string_view word = token();
    if (word == "cap") {
      route.rule.cap_bytes_per_s = rate();
      word = token();
    }
    if (word != "transport")
      fail(route.rule.cap_bytes_per_s ? "'transport'" : "'cap' or 'transport'", word);
    word = token();
    auto found = std::find_if(kTransports.begin(), kTransports.end(),
                              [&](Transport t) { return text(t) == word; });
    if (found == kTransports.end()) fail("nvlink, pcie, host or network", word);
    route.rule.transport = *found;
    if (std::string_view more = token(); !more.empty()) {
      if (more != "class") fail("'class' or the end of the line", more);
      word = token();
      route.rule.stated_class = find_path_class(word);
      if (!route.rule.stated_class)
        fail("a class (NVL, NVB, C2C, PIX, PXB, P2C, PXN, PHB, SYS, NET)", word);
    }
    out_.routes.push_back(std::move(route));
  }

  // Reads up to and including "via".
  void read_where(RouteLine& route) {
    std::string_view word = token();
    if (word == "within" || word == "between") {
      route.where = word == "within" ? RouteLine::Where::Within : RouteLine::Where::Between;
      return expect("via");
    }
    if (word == "pairs") return read_pairs(route);
    route.where = RouteLine::Where::Groups;
    route.a = route.b = group_index(word, "within, between, pairs or a group");
    word = token();
    if (word == "via") return;
    if (word == "to") {
      route.where = RouteLine::Where::FromTo;
      word = token();
    }
    route.b = group_index(
        word, route.where == RouteLine::Where::FromTo ? "a group" : "'to', 'via' or a group");
    expect("via");
  }

  void read_pairs(RouteLine& route) {
    route.where = RouteLine::Where::Pairs;
    std::string_view word = token();
    for (; !word.empty() && word != "via"; word = token()) {
      std::pair<std::int32_t, std::int32_t> pair = device_range(word, true);
      if (pair.first == pair.second) fail("two different devices", word);
      count_members(2);
      route.pairs.push_back(pair);
    }
    if (route.pairs.empty() || word.empty())
      fail(route.pairs.empty() ? "pairs of devices such as 0-1" : "another pair or 'via'", word);
  }

  std::int32_t group_index(std::string_view word, std::string_view expected) const {
    std::optional<std::int32_t> index = find(out_.groups, word);
    if (!index) fail(expected, word);
    return *index;
  }

  // Reads up to and including "latency".
  void read_hops(RouteLine& route) {
    std::string_view word = token();
    for (; !word.empty() && word != "latency"; word = token()) {
      if (route.rule.hops.size() == kMaxHops) fail(fmt::format("at most {} hops", kMaxHops), word);
      Hop hop = read_hop(word, route.where == RouteLine::Where::Between);
      if (std::find(route.rule.hops.begin(), route.rule.hops.end(), hop) != route.rule.hops.end())
        fail("each resource once in a route", word);
      route.rule.hops.push_back(hop);
    }
    if (route.rule.hops.empty()) fail("a hop such as nvlink.out", word);
    if (word.empty()) fail("another hop or 'latency'", word);
  }

  // PORT.out, PORT.in, a fabric resource or a shared resource; between nodes the latter is written
  // source.NAME or destination.NAME.
  Hop read_hop(std::string_view word, bool between) const {
    std::size_t dot = word.find('.');
    if (dot == std::string_view::npos) {
      if (std::optional<std::int32_t> index = find(out_.fabric, word))
        return {Hop::Kind::Fabric, *index};
      std::optional<std::int32_t> index = find(out_.shared, word);
      if (index && between)
        fail(fmt::format("source.{} or destination.{} between nodes", word, word), word);
      if (index) return {Hop::Kind::SourceNodeShared, *index};
    } else {
      std::string_view head = word.substr(0, dot), tail = word.substr(dot + 1);
      std::optional<std::int32_t> port = find(out_.ports, head);
      if (port && tail == "out") return {Hop::Kind::SourceOut, *port};
      if (port && tail == "in") return {Hop::Kind::DestinationIn, *port};
      std::optional<std::int32_t> shared = find(out_.shared, tail);
      if (shared && between && head == "source") return {Hop::Kind::SourceNodeShared, *shared};
      if (shared && between && head == "destination")
        return {Hop::Kind::DestinationNodeShared, *shared};
    }
    fail("a hop (PORT.out, PORT.in, a shared or fabric resource declared above)", word);
  }

  // ---- checks across lines ----

  void check() {
    if (!has_name_) contradict("a line 'name'", "the end");
    if (!has_devices_) contradict("a line 'devices'", "the end");
    if (std::int64_t{out_.nodes} * out_.devices > kMaxRanks)
      contradict("at most 2^20 devices in all",
                 fmt::format("{} nodes of {}", out_.nodes, out_.devices));
    bool by_devices = out_.counts == TopologyDescription::Counts::Devices;
    if (by_devices && (out_.nodes != 1 || !out_.groups.empty()))
      contradict("one node without groups, as 'count devices' makes all devices alike", "more");
    for (std::size_t i = 0; i < out_.routes.size() && by_devices; ++i)
      if (out_.routes[i].where != RouteLine::Where::Within)
        fail_at_route(i, "'within', as 'count devices' makes all devices alike");

    RouteTable table = make_route_table(out_);
    if (table.too_many_classes)
      contradict(fmt::format("routes that distinguish at most {} devices", kMaxDeviceClasses),
                 "more");
    if (table.missing)
      contradict("a route for every pair of devices",
                 fmt::format("none from device {} to device {}", table.missing->first,
                             table.missing->second));
    bool needs_between = out_.nodes > 1 || out_.counts == TopologyDescription::Counts::Nodes;
    if (needs_between && table.rule_between < 0)
      contradict("a line 'route between', as there can be several nodes", "the end");
    for (std::size_t i = 0; i < table.taken.size(); ++i)
      if (!table.taken[i] &&
          !(out_.devices == 1 && out_.routes[i].where == RouteLine::Where::Within))
        fail_at_route(i,
                      "a route that some pair of devices takes (the first matching line counts)");
    build_topology(out_, std::nullopt);
  }

  [[noreturn]] void fail_at_route(std::size_t route, std::string_view expected) {
    line_number_ = out_.routes[route].line;
    contradict(expected, "another");
  }

  std::size_t members_ = 0;
  bool has_name_ = false, has_devices_ = false, has_nodes_ = false, has_count_ = false;
  TopologyDescription out_;
};

}  // namespace

TopologyDescription parse_topology(std::string_view text, std::string_view file) {
  return Reader(text, file).read();
}

}  // namespace reshard
