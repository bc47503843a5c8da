// SPDX-License-Identifier: BSD-3-Clause
// Every preset and some oddly wired machines: everything is drawn once, and connected as it is.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "sim/machines/presets.h"
#include "sim/picture/pictures.h"
#include "sim/picture/topology/node_links.h"
#include "tests/sim/picture/random_machine.h"
#include "tests/sim/picture/read_back.h"

using namespace reshard;
using namespace reshard::sim;

namespace {

Topology from_text(const std::string& text) {
  return build_topology(parse_topology("reshard-topology 1\n" + text, "test.topo"), {});
}

// A line of hosts through the fabric, what is only touched, and a port on no route.
Topology workstation() {
  return from_text(
      "name workstation\ndevices 4\nnodes 3\ncount nodes\n"
      "port nvlink 50GB/s\nport pcie 24GB/s in 22GB/s\nport spare 1GB/s\n"
      "shared staging 8GB/s\nshared nics 50GB/s\nfabric spine 200GB/s\n"
      "group socket0 0-1\ngroup socket1 2-3\n"
      "route pairs 0-1 2-3 via nvlink.out nvlink.in latency 8us transport nvlink\n"
      "route socket0 socket1 via pcie.out staging pcie.in latency 25us transport host\n"
      "route between via source.nics spine destination.nics latency 20us transport network\n");
}

// Two buses whose devices alternate: their bars would lie on each other.
Topology alternating() {
  return from_text(
      "name alternating\ndevices 6\nport pcie 20GB/s\nshared even 8GB/s\nshared odd 9GB/s\n"
      "group evens 0 2 4\ngroup odds 1 3 5\n"
      "route evens via even latency 1us transport host\n"
      "route odds via odd latency 1us transport host\n"
      "route within via pcie.out pcie.in latency 1us transport pcie class PXB\n");
}

Topology single_devices() {
  return from_text(
      "name singles\ndevices 1\nnodes 2\ncount nodes\nshared nics 50GB/s\nfabric spine 9GB/s\n"
      "route between via source.nics spine destination.nics latency 2us transport network\n");
}

std::vector<Topology> machines() {
  std::vector<Topology> out;
  for (const PresetInfo& preset : presets()) out.push_back(find_topology(preset.name));
  for (const char* spec :
       {"dgx-h100:2", "dgx-h100:128", "gh200-quad:3", "gb200-nvl72:2", "l40s-8:2", "nvswitch:2",
        "nvswitch:30", "dgx-h100:4,nics=2,oversubscription=4", "dgx-v100:2,nics=1",
        "traces/topologies/nccl-8xH100.xml", "traces/topologies/p2p-8x3090.txt",
        "traces/topologies/smi-8xA100-pcie.txt"})
    out.push_back(find_topology(spec));
  out.push_back(workstation());
  out.push_back(alternating());
  out.push_back(single_devices());
  for (std::uint64_t seed = 0; seed < 150; ++seed) out.push_back(test::random_machine(seed));
  return out;
}

ReadBack picture_of(const Topology& topology, const LinkLoads& loads = {}) {
  return ReadBack([&](Node parent) { draw_topology(parent, topology, loads); });
}

std::string link_of(const std::string& tip) { return tip.substr(0, tip.find(": ")); }

std::vector<Area> devices_of(Node node) {
  std::vector<Area> out;
  for (Node group : node.children("g"))
    if (group.attribute("class").value() == std::string("device"))
      out.push_back(area(group.child("rect")));
  return out;
}

// The GPUs of the first node that a link is of, by its name.
std::map<std::string, std::vector<std::int32_t>> gpus_of(const Topology& topology) {
  std::map<std::string, std::vector<std::int32_t>> out;
  for (const NodeLinks::Link& link : links_of(topology, 128).links)
    out[topology.resource_name(link.in(topology, 0))] = link.devices;
  return out;
}

using Gpus = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("every device and link of the nodes drawn is drawn once") {
  for (const Topology& topology : machines()) {
    CAPTURE(topology.name());
    ReadBack picture = picture_of(topology);
    std::map<std::string, int> tips;
    for (auto [tip, times] : picture.texts("title")) tips[link_of(tip)] += times;
    std::size_t drawn = picture.all("//g[@class='node']").size();
    REQUIRE(drawn > 0);
    std::vector<std::string> idle = links_of(topology, 128).idle;
    int per_node =
        (topology.resource_count() - static_cast<int>(topology.fabric().size())) / topology.nodes();
    for (std::int32_t r = 0; r < topology.resource_count(); ++r) {
      std::string name = topology.resource_name(ResourceId{r});
      bool fabric = r >= per_node * topology.nodes();
      if (!fabric && r / per_node >= static_cast<std::int32_t>(drawn)) continue;
      std::string first = fabric ? name : "node0" + name.substr(name.find('.'));
      CAPTURE(name);
      bool on_no_route = std::find(idle.begin(), idle.end(), first) != idle.end();
      CHECK(tips[name] == (on_no_route ? 0 : 1));
    }
    for (int rank = 0; rank < static_cast<int>(drawn) * topology.node().devices; ++rank)
      CHECK(tips["rank " + std::to_string(rank)] == 1);
  }
}

TEST_CASE("devices of a node stand beside each other, and nodes too") {
  for (const Topology& topology : machines()) {
    CAPTURE(topology.name());
    ReadBack picture = picture_of(topology);
    double right = 0;
    for (Node node : picture.all("//g[@class='node']")) {
      std::vector<Area> devices = devices_of(node);
      CHECK(devices.size() == to_index(topology.node().devices));
      for (std::size_t i = 0; i < devices.size(); ++i)
        for (std::size_t j = 0; j < i; ++j) CHECK_FALSE(devices[i].overlaps(devices[j]));
      Area box = area(node.child("rect"));
      for (const Area& device : devices) CHECK(device.x + device.width <= box.width);
      std::string moved = node.attribute("transform").value();
      double left = std::stod(moved.substr(moved.find('(') + 1));
      CHECK(left >= right);
      right = left + box.width;
    }
    CHECK(right <= number(picture.svg(), "width"));
  }
}

TEST_CASE("bars of a row do not overlap, and every link inside a node is in one row") {
  for (const Topology& topology : machines()) {
    CAPTURE(topology.name());
    NodeLinks links = links_of(topology, 128);
    std::vector<int> times(links.links.size(), 0);
    for (const LinkRow& row : rows_of(topology, links)) {
      std::vector<Gpus> spans;
      for (std::size_t bar : row.bars) {
        bool meets = row.of == LinkRow::Of::Meetings;
        if (!meets) ++times[bar];
        const Gpus& gpus = meets ? links.meetings[bar].devices : links.links[bar].devices;
        REQUIRE(!gpus.empty());
        for (const Gpus& other : spans)
          CHECK((gpus.front() > other.back() || other.front() > gpus.back()));
        spans.push_back(gpus);
        CHECK((row.of != LinkRow::Of::Ports || gpus.size() == 1));
      }
    }
    for (std::size_t i = 0; i < times.size(); ++i)
      CHECK(times[i] == (links.links[i].fabric ? 0 : 1));
  }
}

TEST_CASE("a bar lies over the GPUs of its link, and points tell them from those that it passes") {
  ReadBack picture = picture_of(find_topology("gh200-quad"));
  Node node = picture.all("//g[@class='node']")[0];
  std::vector<Area> devices = devices_of(node);
  Gpus own{0, 2};
  Node bar = node.select_node(".//g[title[starts-with(.,'node0.link02:')]]").node();
  Area box = area(bar.child("rect"));
  CHECK(box.x == devices[0].x);
  CHECK(box.x + box.width == devices[2].x + devices[2].width);
  std::vector<double> points;
  for (Node point : bar.children("circle")) points.push_back(number(point, "cx"));
  std::vector<double> middles;
  for (std::int32_t gpu : own)
    middles.push_back(devices[to_index(gpu)].x + devices[to_index(gpu)].width / 2);
  CHECK(points == middles);
  Node near = node.select_node(".//g[title[starts-with(.,'node0.link01:')]]").node();
  CHECK(near.child("rect"));
  CHECK_FALSE(near.child("circle"));
}

TEST_CASE("a link is as wide as its capacity") {
  for (const Topology& topology : machines()) {
    CAPTURE(topology.name());
    std::map<std::string, std::int64_t> capacity;
    for (std::int32_t r = 0; r < topology.resource_count(); ++r)
      capacity[topology.resource_name(ResourceId{r})] =
          topology.resource_bytes_per_s(ResourceId{r});
    ReadBack picture = picture_of(topology);
    std::map<std::int64_t, double> width;
    for (Node path : picture.all("//rect[starts-with(@class,'link')]")) {
      double wide = number(path, "height");
      auto [known, is_new] =
          width.emplace(capacity.at(link_of(path.parent().child("title").text().get())), wide);
      CHECK(known->second == wide);
    }
    double last = 0;
    for (auto [rate, wide] : width) {
      CHECK(wide >= std::max(1.0, last));
      last = wide;
    }
    if (!width.empty() && width.size() > 1) CHECK(width.begin()->second < last);
  }
}

TEST_CASE("a link is of the GPUs on the smaller side of its routes, a bus of all") {
  Topology rtx = find_topology("rtx-pro-6000-8:2");
  auto gpus = gpus_of(rtx);
  CHECK(gpus.at("node0.gpu3.pcie.out") == Gpus{3});
  CHECK(gpus.at("node0.uplink1-out") == Gpus{2, 3});
  CHECK(gpus.at("node0.uplink1-in") == Gpus{2, 3});
  CHECK(gpus.at("node0.nics-out").size() == 8);
  NodeLinks links = links_of(rtx, 128);
  REQUIRE(links.meetings.size() == 4);
  CHECK(links.meetings[3].devices == Gpus{6, 7});
  auto texts = picture_of(rtx).texts("text");
  CHECK(texts["uplink1-out"] == 2);
  CHECK(texts["PHB, 38 GB/s"] == 2);
  CHECK(texts["reach each other, PIX"] == 1);
  CHECK(texts["38 GB/s: uplink0-out, uplink0-in, uplink1-out and 5 more"] == 1);

  Topology h100 = find_topology("dgx-h100:2");
  REQUIRE(links_of(h100, 128).meetings.size() == 1);
  CHECK(links_of(h100, 128).meetings[0].devices.size() == 8);
  auto said = picture_of(h100).texts("text");
  CHECK(said["nvlink.out, NVL, 450 GB/s"] == 1);
  CHECK(said["nic.in, NET, 50 GB/s"] == 1);
  CHECK(said["450 GB/s: nvlink"] == 1);

  // Bridges of two, and host memories of each socket and of all.
  auto staged = gpus_of(find_topology("pcie-8x3090"));
  CHECK(staged.at("node0.staging0") == Gpus{0, 1, 2, 3});
  CHECK(staged.at("node0.staging1") == Gpus{4, 5, 6, 7});
  CHECK(staged.at("node0.staging-across").size() == 8);
  CHECK(links_of(find_topology("pcie-8x3090"), 128).meetings.size() == 4);

  auto v100 = gpus_of(find_topology("dgx-v100:2"));
  CHECK(v100.at("node0.link15") == Gpus{1, 5});
  CHECK(v100.at("node0.socket-link").size() == 8);

  auto buses = gpus_of(alternating());
  CHECK(buses.at("node0.even") == Gpus{0, 2, 4});
  CHECK(buses.at("node0.odd") == Gpus{1, 3, 5});

  CHECK(picture_of(find_topology("dgx-h100:4,nics=2,oversubscription=4")).texts("text")["+ 2"] ==
        1);
  CHECK(picture_of(workstation()).texts("text")["On no route: node0.gpu0.spare.out and 7 more."] ==
        1);
  CHECK(picture_of(workstation()).texts("text")["spine, NET, 200 GB/s"] == 1);
}

TEST_CASE("GPUs that reach only some of those that others reach meet in pairs") {
  Topology chain = from_text(
      "name chain\ndevices 3\nport cable 50GB/s\nport pcie 20GB/s\n"
      "route pairs 0-1 1-2 via cable.out cable.in latency 1us transport nvlink\n"
      "route within via pcie.out pcie.in latency 1us transport pcie class PHB\n");
  std::vector<Gpus> meet;
  for (const NodeLinks::Meeting& meeting : links_of(chain, 128).meetings)
    meet.push_back(meeting.devices);
  CHECK(meet == std::vector<Gpus>{{0, 1}, {1, 2}, {0, 2}});
}

TEST_CASE("the best class is nearest to the GPUs, the network furthest") {
  for (const char* name : {"dgx-h100:4,nics=2,oversubscription=4", "rtx-pro-6000-8:2"}) {
    Topology topology = find_topology(name);
    NodeLinks links = links_of(topology, 128);
    PathClass last = PathClass::NVL;
    for (const LinkRow& row : rows_of(topology, links)) {
      PathClass now = row.of == LinkRow::Of::Meetings ? links.meetings[row.bars[0]].path_class
                                                      : links.links[row.bars[0]].path_class;
      CHECK(now >= last);
      last = now;
    }
    CHECK(last == PathClass::NET);
  }
}

TEST_CASE("many GPUs are folded into rows, each with its part of the bars") {
  ReadBack picture = picture_of(find_topology("gb200-nvl72:2"));
  std::set<double> rows;
  Node node = picture.all("//g[@class='node']")[0];
  for (const Area& device : devices_of(node)) rows.insert(device.y);
  CHECK(rows.size() == 4);
  CHECK(picture.texts("text")["reach each other, NVL"] == 4);
  Node all = node.select_node(".//g[title[starts-with(.,'72 GPUs reach each other')]]").node();
  auto parts = all.children("rect");
  CHECK(std::distance(parts.begin(), parts.end()) == 4);
}

TEST_CASE("loads: the nodes of the fullest links, which stand out as they were used") {
  Topology topology = find_topology("dgx-h100:64");
  std::vector<ResourceUse> uses(to_index(topology.resource_count()));
  constexpr std::int64_t end_ps = 1'000'000'000;  // 1 ms: 50 MB fill a NIC
  auto use = [&](const std::string& name, std::int64_t bytes) {
    for (std::int32_t r = 0; r < topology.resource_count(); ++r)
      if (topology.resource_name(ResourceId{r}) == name) uses[to_index(r)].bytes = bytes;
  };
  use("node37.gpu2.nic.out", 50'000'000);
  use("node5.gpu0.nic.in", 25'000'000);
  use("node6.gpu0.nvlink.out", 45'000'000);
  ReadBack picture = picture_of(topology, {uses, end_ps});
  std::vector<Node> nodes = picture.all("//g[@class='node']");
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[0].select_node(".//title[starts-with(.,'rank 296:')]"));
  CHECK(nodes[1].select_node(".//title[starts-with(.,'rank 40:')]"));
  std::map<std::string, std::string> colour;
  for (Node bar : picture.all("//rect[starts-with(@class,'link')]"))
    colour[bar.parent().child("title").text().get()] = bar.attribute("fill").value();
  CHECK(colour["node37.gpu2.nic.out: 50 GB/s, carried 47.684 MiB, 100.0 % of its capacity"] ==
        "#00224e");
  CHECK(colour["node5.gpu0.nic.in: 50 GB/s, carried 23.842 MiB, 50.0 % of its capacity"] ==
        "#979693");
  CHECK(colour["node5.gpu1.nic.in: 50 GB/s, carried 0 B, 0.0 % of its capacity"] == "#f1f4f7");
  CHECK(picture.all("//rect[@style='--night:#fee838' and starts-with(@class,'link')]").size() == 1);
  auto texts = picture.texts("text");
  CHECK(texts["The nodes drawn are those with the fullest links."] == 1);
  CHECK(texts["100 % of a link's capacity; empty: nothing"] == 1);
}

TEST_CASE("names are escaped") {
  NodeTemplate node;
  node.devices = 2;
  node.ports = {{"a<b>&\"c\"", 1'000'000'000, 1'000'000'000}};
  RouteRule rule;
  rule.hops = {{Hop::Kind::SourceOut, 0}, {Hop::Kind::DestinationIn, 0}};
  rule.transport = Transport::NVLink;
  node.rules = {rule};
  node.rule_within = {0};
  ReadBack picture = picture_of(Topology("</svg><script>", node, {}, 1));
  CHECK(picture.svg().child("title").text().get() == std::string("</svg><script>"));
  CHECK(picture.texts("title")["node0.gpu1.a<b>&\"c\".in: 1 GB/s"] == 1);
}

TEST_CASE("large machines make small pictures that say what is left out") {
  ReadBack nodes = picture_of(find_topology("dgx-h100:128"));
  CHECK(nodes.bytes() < 40'000);
  CHECK(nodes.texts("text")["+ 126"] == 1);
  CHECK(nodes.texts("text")["128 nodes of 8 GPUs"] == 1);
  ReadBack devices = picture_of(find_topology("nvswitch:1024"));
  CHECK(devices.bytes() < 200'000);
  CHECK(devices.texts("text")["The first 128 of 1024 GPUs of a node."] == 1);
  picture_of(find_topology("dgx-h100:131072"));
  // The devices behind the last drawn one are of another class.
  Topology classes = from_text(
      "name classes\ndevices 200\ncount nodes\nport a 1GB/s\nport b 2GB/s\n"
      "group late 150-199\nroute late via b.out b.in latency 1us transport pcie class PHB\n"
      "route within via a.out a.in latency 1us transport nvlink\n"
      "route between via a.out a.in latency 1us transport network\n");
  NodeLinks links = links_of(classes, 128);
  CHECK(links.devices == 128);
  CHECK(links.links.size() == 2 * 128);
  CHECK(links_of(classes, 200).links.size() == 2 * 200 + 2 * 50);
}
