// SPDX-License-Identifier: BSD-3-Clause
// Every preset and some oddly wired machines: everything is drawn once, and connected as it is.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "sim/machines/presets.h"
#include "sim/picture/pictures.h"
#include "sim/picture/topology/wiring.h"
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

int count_of(const Wiring& wiring, Wiring::Spot::Kind kind) {
  return static_cast<int>(std::count_if(wiring.spots.begin(), wiring.spots.end(),
                                        [&](const Wiring::Spot& s) { return s.kind == kind; }));
}

}  // namespace

TEST_CASE("every device and link of the nodes drawn is drawn once") {
  for (const Topology& topology : machines()) {
    CAPTURE(topology.name());
    ReadBack picture = picture_of(topology);
    std::map<std::string, int> tips;
    for (auto [tip, times] : picture.texts("title")) tips[link_of(tip)] += times;
    std::size_t drawn = picture.all("//g[@class='node']").size();
    REQUIRE(drawn > 0);
    std::vector<std::string> idle = wiring_of(topology, 128).idle;
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

TEST_CASE("bars on one track do not overlap, and lead up to what they join") {
  for (const Topology& topology : machines()) {
    CAPTURE(topology.name());
    Wiring wiring = wiring_of(topology, 128);
    std::vector<SpotPlace> places = places_of(wiring);
    auto devices = to_index(wiring.devices);
    for (std::size_t i = devices; i < places.size(); ++i) {
      CHECK(places[i].track != 0);
      CHECK(places[i].low < places[i].high);
      for (std::size_t j = devices; j < i; ++j) {
        bool apart = places[i].high <= places[j].low || places[j].high <= places[i].low;
        CHECK((places[i].track != places[j].track || apart));
      }
    }
    for (const Wiring::Cable& cable : wiring.cables) {
      const SpotPlace *low = &places[to_index(cable.from)], *high = &places[to_index(cable.to)];
      if (low->level > high->level) std::swap(low, high);
      if (low->level == high->level) continue;
      CHECK(high->low <= low->low);
      CHECK(low->high <= high->high);
    }
  }
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
    for (Node path : picture.all("//path[starts-with(@class,'link')]")) {
      double wide = number(path, "stroke-width");
      auto [known, is_new] =
          width.emplace(capacity.at(link_of(path.child("title").text().get())), wide);
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

TEST_CASE("switches, hosts and NICs are found where routes meet") {
  using Kind = Wiring::Spot::Kind;
  Topology rtx = find_topology("rtx-pro-6000-8:2");
  Wiring wiring = wiring_of(rtx, 128);
  CHECK(wiring.cables.size() == 8 + 4 + 1);
  CHECK(count_of(wiring, Kind::Joint) == 4 + 3);  // the host, the NICs, the network
  CHECK(count_of(wiring, Kind::Shared) == 0);
  auto texts = picture_of(rtx).texts("text");
  for (const char* name : {"switch0", "switch3", "host", "NICs", "node1"})
    CHECK(texts[name] == (name == std::string("node1") ? 1 : 2));
  CHECK(texts["network"] == 1);
  CHECK(texts["38 GB/s: uplink0-out, uplink0-in, uplink1-out and 5 more"] == 1);

  auto h100 = picture_of(find_topology("dgx-h100:2")).texts("text");
  CHECK(h100["NVSwitch"] == 2);
  CHECK(h100["450 GB/s: nvlink"] == 1);
  CHECK(h100["50 GB/s: nic"] == 1);

  // Half-duplex: every host memory is one GPU's, and all of them meet.
  Wiring hosts = wiring_of(find_topology("traces/topologies/p2p-8x3090.txt"), 128);
  CHECK(count_of(hosts, Kind::Shared) == 0);
  CHECK(count_of(hosts, Kind::Joint) == 4 + 1);
  CHECK(hosts.cables.size() == 8 + 8);

  Wiring staged = wiring_of(find_topology("pcie-8x3090"), 128);
  CHECK(count_of(staged, Kind::Shared) == 3);
  CHECK(staged.touching.size() == 4 + 4 + 8);

  Wiring v100 = wiring_of(find_topology("dgx-v100:2"), 128);
  CHECK(std::count_if(v100.cables.begin(), v100.cables.end(), [](const Wiring::Cable& cable) {
          return cable.from < 8 && cable.to < 8 && cable.back;
        }) == 16);
  // What leads from a GPU to what both sockets cross is no place of its own.
  CHECK(count_of(v100, Kind::Joint) == 2);
  CHECK(count_of(v100, Kind::Shared) == 1);
  CHECK(v100.touching.size() == 8);  // the NICs

  auto fat = picture_of(find_topology("dgx-h100:4,nics=2,oversubscription=4")).texts("text");
  CHECK(fat["leaf switch"] == 2);
  CHECK(fat["+ 2"] == 1);

  CHECK(picture_of(workstation()).texts("text")["On no route: node0.gpu0.spare.out and 7 more."] ==
        1);
}

TEST_CASE("the way out of a node leads upwards") {
  Wiring wiring = wiring_of(find_topology("dgx-h100:4,nics=2,oversubscription=4"), 128);
  std::vector<SpotPlace> places = places_of(wiring);
  std::int32_t nics = 0, leaf = 0, network = 0;
  for (std::size_t s = to_index(wiring.devices); s < places.size(); ++s) {
    if (wiring.spots[s].path_class != PathClass::NET) {
      CHECK(places[s].track == -1);
      continue;
    }
    (wiring.spots[s].outside ? network : places[s].touches_all ? nics : leaf) = places[s].track;
  }
  CHECK(nics == 1);
  CHECK(leaf == 2);
  CHECK(network == 3);
  // Above the switches and the host.
  Wiring pcie = wiring_of(find_topology("rtx-pro-6000-8:2"), 128);
  std::map<PathClass, std::int32_t> track;
  places = places_of(pcie);
  for (std::size_t s = to_index(pcie.devices); s < places.size(); ++s)
    if (!pcie.spots[s].outside) track[*pcie.spots[s].path_class] = places[s].track;
  CHECK(track == std::map<PathClass, std::int32_t>{
                     {PathClass::PIX, 1}, {PathClass::PHB, 2}, {PathClass::NET, 3}});
}

TEST_CASE("many GPUs that reach the same are folded into rows, each with its part of the bars") {
  ReadBack picture = picture_of(find_topology("gb200-nvl72:2"));
  std::set<double> rows;
  for (const Area& device : devices_of(picture.all("//g[@class='node']")[0])) rows.insert(device.y);
  CHECK(rows.size() == 4);
  auto texts = picture.texts("text");
  CHECK(texts["NVSwitch"] == 4);
  CHECK(texts["network"] == 4);
}

TEST_CASE("arcs of a GPU do not cross: the nearer on its right begins further right") {
  std::map<std::string, double> begin;
  ReadBack picture = picture_of(find_topology("gh200-quad:2"));
  for (Node path : picture.all("//path[starts-with(@class,'link')]"))
    begin[link_of(path.child("title").text().get())] =
        std::stod(std::string(path.attribute("d").value()).substr(1));
  CHECK(begin.at("node0.link03") < begin.at("node0.link02"));
  CHECK(begin.at("node0.link02") < begin.at("node0.link01"));
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
  for (Node path : picture.all("//path[starts-with(@class,'link')]"))
    colour[path.child("title").text().get()] = path.attribute("stroke").value();
  CHECK(colour["node37.gpu2.nic.out: 50 GB/s, carried 47.684 MiB, 100.0 % of its capacity"] ==
        "#00224e");
  CHECK(colour["node5.gpu0.nic.in: 50 GB/s, carried 23.842 MiB, 50.0 % of its capacity"] ==
        "#979693");
  CHECK(colour["node5.gpu1.nic.in: 50 GB/s, carried 0 B, 0.0 % of its capacity"] == "#f1f4f7");
  CHECK(
      picture.all("//path[@style='--night:#fee838' and contains(@class,'shade-stroke')]").size() ==
      1);
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
  Wiring wiring = wiring_of(classes, 128);
  CHECK(wiring.devices == 128);
  CHECK(wiring.cables.size() == 128);
  CHECK(wiring_of(classes, 200).cables.size() == 200 + 50);
}
