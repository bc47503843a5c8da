// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/base/errors.h"
#include "sim/machines/presets.h"

namespace reshard::sim {
namespace {

Route route(const Topology& topology, std::int32_t from, std::int32_t to) {
  return topology.route(static_cast<Rank>(from), static_cast<Rank>(to));
}

std::vector<std::string> names(const Topology& topology, std::int32_t from, std::int32_t to) {
  std::vector<std::string> out;
  for (ResourceId id : route(topology, from, to).resources)
    out.push_back(topology.resource_name(id));
  return out;
}

std::vector<std::int64_t> rates(const Topology& topology, std::int32_t from, std::int32_t to) {
  std::vector<std::int64_t> out;
  for (ResourceId id : route(topology, from, to).resources)
    out.push_back(topology.resource_bytes_per_s(id));
  return out;
}

std::string error_of(const std::string& spec) {
  try {
    find_topology(spec);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

// A file in the folder for temporary files, gone afterwards.
struct ScratchFile {
  std::string path;
  ScratchFile(std::string name, const std::string& text)
      : path((std::filesystem::temp_directory_path() / ("reshard-test-" + name)).string()) {
    std::ofstream(path, std::ios::binary) << text;
  }
  ~ScratchFile() { std::filesystem::remove(path); }
};

TEST_CASE("the presets, each the file of its name") {
  std::vector<std::string> found;
  for (const PresetInfo& preset : presets()) {
    found.push_back(preset.name);
    CAPTURE(preset.name);
    CHECK_FALSE(preset.summary.empty());
    CHECK(preset.text == read_text_file("traces/topologies/" + preset.name + ".topo", 1 << 20));
    CHECK(parse_topology(preset.text, "file").name == preset.name);
    CHECK(find_topology(preset.name).fingerprint() ==
          find_topology("traces/topologies/" + preset.name + ".topo").fingerprint());
  }
  CHECK(found == std::vector<std::string>{"a100-quad", "dgx-a100", "dgx-b200", "dgx-b300",
                                          "dgx-h100", "dgx-h200", "dgx-v100", "gb200-4",
                                          "gb200-nvl72", "gb300-4", "gh200-quad", "l40s-8",
                                          "nvswitch", "pcie-8x3090", "rtx-pro-6000-8"});
  CHECK(presets()[4].summary ==
        "DGX H100: nodes of 8 GPUs behind NVSwitch, one 400 Gb/s NIC per GPU; dgx-h100:n has n "
        "nodes.");
}

TEST_CASE("nvswitch") {
  CHECK(find_topology("nvswitch").devices() == 8);
  Topology topology = find_topology("nvswitch:4096");
  CHECK(topology.name() == "nvswitch:4096");
  CHECK(topology.devices() == 4096);
  CHECK(topology.nodes() == 1);
  CHECK(names(topology, 7, 4095) ==
        std::vector<std::string>{"node0.gpu7.nvlink.out", "node0.gpu4095.nvlink.in"});
  CHECK(rates(topology, 7, 4095) == std::vector<std::int64_t>{450'000'000'000, 450'000'000'000});
  CHECK(route(topology, 0, 1).latency_ps == 700'000);
  CHECK(route(topology, 0, 1).transport == Transport::NVLink);
  CHECK(find_topology("nvswitch:1").devices() == 1);
}

TEST_CASE("dgx-h100 and dgx-a100") {
  struct Machine {
    std::string name;
    std::int64_t nvlink, nic;
  };
  Machine machine = GENERATE(values<Machine>({{"dgx-h100", 450'000'000'000, 50'000'000'000},
                                              {"dgx-a100", 300'000'000'000, 25'000'000'000}}));
  Topology one = find_topology(machine.name), two = find_topology(machine.name + ":2");
  CHECK(one.devices() == 8);
  CHECK(one.name() == machine.name + ":1");
  CHECK(one.fingerprint() == find_topology(machine.name + ":1").fingerprint());
  CHECK(two.devices() == 16);
  CHECK(two.nodes() == 2);
  CHECK(two.node_of(static_cast<Rank>(8)) == 1);
  CHECK(names(two, 9, 15) ==
        std::vector<std::string>{"node1.gpu1.nvlink.out", "node1.gpu7.nvlink.in"});
  CHECK(rates(two, 9, 15) == std::vector<std::int64_t>{machine.nvlink, machine.nvlink});
  // Any NIC to any NIC: no rails.
  CHECK(names(two, 3, 12) == std::vector<std::string>{"node0.gpu3.nic.out", "node1.gpu4.nic.in"});
  CHECK(rates(two, 3, 12) == std::vector<std::int64_t>{machine.nic, machine.nic});
  CHECK(route(two, 9, 15).latency_ps == 700'000);
  CHECK(route(two, 3, 12).latency_ps == 2'700'000);
  CHECK(route(two, 3, 12).transport == Transport::Network);
  CHECK_FALSE(route(two, 3, 12).cap_bytes_per_s.has_value());
}

TEST_CASE("pcie-8x3090: bridges on pairs, one shared staging resource on every other route") {
  Topology topology = find_topology("pcie-8x3090");
  CHECK(topology.name() == "pcie-8x3090");
  REQUIRE(topology.devices() == 8);
  for (std::int32_t from = 0; from < 8; ++from)
    for (std::int32_t to = 0; to < 8; ++to) {
      if (from == to) continue;
      CAPTURE(from, to);
      Route found = route(topology, from, to);
      if (from / 2 == to / 2) {
        CHECK(found.transport == Transport::NVLink);
        CHECK(rates(topology, from, to) ==
              std::vector<std::int64_t>{50'800'000'000, 50'800'000'000});
        CHECK(found.latency_ps == 700'000);
        CHECK_FALSE(found.cap_bytes_per_s.has_value());
        continue;
      }
      bool across = from / 4 != to / 4;
      CHECK(found.transport == Transport::Host);
      CHECK(names(topology, from, to) == std::vector<std::string>{across ? "node0.staging-across"
                                                                  : from < 4 ? "node0.staging0"
                                                                             : "node0.staging1"});
      CHECK(rates(topology, from, to) == std::vector<std::int64_t>{across     ? 7'869'000'000
                                                                   : from < 4 ? 8'604'000'000
                                                                              : 7'535'000'000});
      CHECK(found.cap_bytes_per_s == 6'897'640'000);
      CHECK(found.latency_ps == 2'600'000);
    }
  CHECK(error_of("pcie-8x3090:2") ==
        "topology pcie-8x3090: expected no count (the machine has a fixed size), found :2");
}

TEST_CASE("nodes behind NVSwitch whose GPUs reduce in the switch") {
  struct Node {
    std::string name;
    std::int32_t devices, gpu;
    std::int64_t nvlink, nic;
  };
  constexpr std::int64_t kGB = 1'000'000'000;
  Node node = GENERATE(values<Node>({{"dgx-h200", 8, 90, 450 * kGB, 50 * kGB},
                                     {"dgx-b200", 8, 100, 900 * kGB, 50 * kGB},
                                     {"dgx-b300", 8, 103, 900 * kGB, 100 * kGB},
                                     {"gb200-4", 4, 100, 900 * kGB, 50 * kGB},
                                     {"gb200-nvl72", 72, 100, 900 * kGB, 50 * kGB},
                                     {"gb300-4", 4, 103, 900 * kGB, 100 * kGB}}));
  Topology two = find_topology(node.name + ":2");
  CHECK(two.devices() == 2 * node.devices);
  CHECK(two.machine().compute_capability == node.gpu);
  CHECK((two.machine().nvls && !two.machine().sharp));
  CHECK(rates(two, 0, 1) == std::vector<std::int64_t>{node.nvlink, node.nvlink});
  CHECK(rates(two, 0, node.devices) == std::vector<std::int64_t>{node.nic, node.nic});
  CHECK(route(two, 0, 1).latency_ps == 700'000);
  CHECK(route(two, 0, node.devices).latency_ps == 2'700'000);
}

TEST_CASE("four GPUs with a link per pair and direction") {
  struct Node {
    std::string name;
    std::int64_t link;
  };
  Node node =
      GENERATE(values<Node>({{"a100-quad", 100'000'000'000}, {"gh200-quad", 150'000'000'000}}));
  Topology topology = find_topology(node.name + ":2");
  CHECK(topology.devices() == 8);
  for (std::int32_t from = 4; from < 8; ++from)
    for (std::int32_t to = 4; to < 8; ++to) {
      if (from == to) continue;
      CHECK(names(topology, from, to) ==
            std::vector<std::string>{"node1.link" + std::to_string(from - 4) +
                                     std::to_string(to - 4)});
      CHECK(rates(topology, from, to) == std::vector<std::int64_t>{node.link});
    }
}

TEST_CASE("dgx-v100: six links a GPU, one or two to a neighbour, the rest between sockets") {
  Topology topology = find_topology("dgx-v100:2");
  for (std::int32_t from = 0; from < 8; ++from) {
    std::int64_t out = 0, in = 0;
    int far = 0;
    for (std::int32_t to = 0; to < 8; ++to) {
      if (from == to) continue;
      if (route(topology, from, to).transport != Transport::NVLink) {
        CHECK(from / 4 != to / 4);
        CHECK(topology.rule(Rank{from}, Rank{to}).path_class() == PathClass::SYS);
        ++far;
        continue;
      }
      out += rates(topology, from, to)[0];
      in += rates(topology, to, from)[0];
    }
    CHECK((out == 150'000'000'000 && in == out && far == 3));
  }
  CHECK(names(topology, 1, 9) == std::vector<std::string>{"node0.nics-out", "node1.nics-in"});
}

TEST_CASE("boxes of PCIe: two GPUs share a switch and its uplink") {
  auto classes = [](const Topology& topology) {
    std::string out;
    for (std::int32_t to : {1, 2, 4})
      out += std::string(text(topology.rule(Rank{0}, Rank{to}).path_class())) + " ";
    return out;
  };
  Topology rtx = find_topology("rtx-pro-6000-8"), l40s = find_topology("l40s-8");
  CHECK(classes(rtx) == "PIX PHB SYS ");
  CHECK(classes(l40s) == "PIX PHB SYS ");
  CHECK(names(rtx, 0, 1) == std::vector<std::string>{"node0.gpu0.pcie.out", "node0.gpu1.pcie.in"});
  CHECK(names(rtx, 1, 6) == std::vector<std::string>{"node0.gpu1.pcie.out", "node0.uplink0-out",
                                                     "node0.uplink3-in", "node0.gpu6.pcie.in"});
  CHECK(names(l40s, 2, 5) == std::vector<std::string>{"node0.gpu2.pcie.out", "node0.uplink1-out",
                                                      "node0.socket-link", "node0.uplink2-in",
                                                      "node0.gpu5.pcie.in"});
  CHECK(names(l40s, 2, 1) == std::vector<std::string>{"node0.gpu2.pcie.out", "node0.uplink1-out",
                                                      "node0.uplink0-in", "node0.gpu1.pcie.in"});
}

TEST_CASE("unknown names and wrong counts") {
  std::string list = "topology: expected one of ";
  for (const PresetInfo& preset : presets()) list += preset.name + ", ";
  list += "or a path to a topology file, found ";
  CHECK(error_of("dgx-h10") == list + "'dgx-h10'");
  CHECK(error_of("nvswich:4") == list + "'nvswich'");
  CHECK(error_of("cray") == list + "'cray'");
  CHECK(error_of("") == list + "''");
  CHECK(error_of("build") == list + "'build'");  // a folder is no preset either
  CHECK(error_of(std::string(100000, 'd')).size() < 300);
  CHECK(error_of("dgx-h100:") == "topology: expected a count after 'dgx-h100:', found ''");
  CHECK(error_of("dgx-h100:two") == "topology: expected a count after 'dgx-h100:', found 'two'");
  CHECK(error_of("dgx-h100:0") == "topology dgx-h100: expected 1 to 131072 nodes, found 0");
  CHECK(error_of("dgx-h100:-1") == "topology dgx-h100: expected 1 to 131072 nodes, found -1");
  CHECK(error_of("dgx-h100:131073") ==
        "topology dgx-h100: expected 1 to 131072 nodes, found 131073");
  CHECK(error_of("dgx-h100:99999999999999999999") ==
        "topology: expected a count after 'dgx-h100:', found '99999999999999999999'");
  CHECK(error_of("nvswitch:1000000000000") ==
        "topology nvswitch: expected 1 to 1048576 devices, found 1000000000000");
  CHECK(find_topology("dgx-h100:131072").devices() == 1 << 20);
}

TEST_CASE("files") {
  std::string text =
      "reshard-topology 1\nname mine\ndevices 2\ncount nodes\nport a 1GB/s\nroute within via a.out "
      "latency 1us transport pcie\n";
  std::string between = "route between via a.in latency 2us transport network\n";
  ScratchFile good("good.topo", text + between), bad("bad.topo", text),
      long_line("long.topo", text + "#" + std::string((64 << 20) + 1, 'x'));
  CHECK(find_topology(good.path).name() == "mine:1");
  CHECK(find_topology(good.path + ":3").devices() == 6);
  CHECK(error_of(bad.path) ==
        bad.path +
            ":6: expected a line 'route between', as there can be several nodes, found the end");
  CHECK(error_of("nowhere/m.topo") == "nowhere/m.topo: expected a file, found none");
  CHECK(error_of("m.topo:2") == "m.topo: expected a file, found none");
  CHECK(error_of("traces/topologies") == "traces/topologies: expected a file, found a directory");
  CHECK(error_of(long_line.path) ==
        long_line.path + ": expected at most 67108864 bytes, found more");
  CHECK_THROWS_WITH(read_text_file(long_line.path, std::size_t{1} << 30),
                    long_line.path + ":7: expected lines of at most 64 MiB, found a longer one");
  CHECK(read_text_file(good.path, 1000) == text + between);
}

TEST_CASE("what a network adds gets a name that nothing has") {
  for (const char* line : {"port uplinks-out 9GB/s", "shared uplinks-out 9GB/s",
                           "fabric uplinks-out 9GB/s", "group uplinks-out 0"}) {
    CAPTURE(line);
    ScratchFile file("taken.topo",
                     std::string("reshard-topology 1\nname m\ndevices 1\ncount nodes\n"
                                 "shared s 50GB/s\n") +
                         line +
                         "\nroute between via source.s destination.s latency 1us "
                         "transport network\n");
    CHECK(names(find_topology(file.path + ":2,oversubscription=2"), 0, 1) ==
          std::vector<std::string>{"node0.s", "node0.uplinks-out-more", "node1.uplinks-in",
                                   "node1.s"});
  }
}

TEST_CASE("the default machine holds all ranks, with as few nodes as can be") {
  CHECK(default_topology(1).name() == "dgx-h100:1");
  CHECK(default_topology(8).name() == "dgx-h100:1");
  CHECK(default_topology(9).name() == "dgx-h100:2");
  CHECK(default_topology(1 << 20).devices() == 1 << 20);
  CHECK_THROWS_WITH(default_topology((1 << 20) + 1),
                    "topology dgx-h100: expected 1 to 131072 nodes, found 131073");
  require_devices(default_topology(16), 15);
  CHECK_THROWS_WITH(
      require_devices(find_topology("dgx-h100"), 15),
      "topology dgx-h100:1: expected a device for every rank, found 8 devices and rank 15");
}

}  // namespace
}  // namespace reshard::sim
