// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include <regex>

#include "sim/machine_files/p2p_matrices.h"
#include "sim/machine_files/writers/writers.h"
#include "sim/machines/plausible.h"
#include "sim/machines/presets.h"
#include "tests/sim/machine_files/machine_files.h"

namespace reshard::sim {
namespace {

const std::string kSmi = "traces/topologies/smi-8xA100-pcie.txt",
                  kP2p = "traces/topologies/p2p-8x3090.txt";

Topology built(const ReadTopology& read) { return build_topology(read.description, std::nullopt); }

// ---- nvidia-smi topo -m

TEST_CASE("a matrix of nvidia-smi: bridges, switches, sockets, shared NICs") {
  ReadTopology read = read_topology(read_text_file(kSmi, 1 << 20), kSmi);
  CHECK(read.doubts.empty());
  Topology topology = built(read);
  CHECK(topology.machine().compute_capability == 80);
  CHECK(route_of(topology, 4, 5) ==
        "nvlink NVL node0.gpu4.nvlink.out=300GB/s node0.gpu5.nvlink.in=300GB/s 0.7us");
  CHECK(route_of(topology, 1, 2) ==
        "pcie PHB node0.gpu1.pcie.out=24GB/s node0.uplink0-out=24GB/s node0.uplink1-in=24GB/s "
        "node0.gpu2.pcie.in=24GB/s 0.7us");
  CHECK(route_of(topology, 1, 7).find("pcie SYS") == 0);
  CHECK(route_of(topology, 1, 7).find("socket-link=20GB/s") != std::string::npos);
  CHECK(route_of(find_topology(kSmi + ":2"), 1, 15) ==
        "network NET node0.nics-out=100GB/s node1.nics-in=100GB/s cap=25GB/s 2.7us");
  CHECK(read.description.assumed.size() == 5);
}

TEST_CASE("a matrix as web pages and terminals print it") {
  std::string text = read_text_file(kSmi, 1 << 20);
  TopologyDescription plain = read_topology(text, "m").description;
  std::string blanks = std::regex_replace(text, std::regex("\t+"), "   "),
              underlined = std::regex_replace(text, std::regex("\t(GPU\\d|NIC\\d)(?=\t)"),
                                              "\t\x1b[4m$1\x1b[0m"),
              windows = std::regex_replace(text, std::regex("\n"), "\r\n"),
              no_affinity = std::regex_replace(text, std::regex("\t\\S+\t\\d\t\tN/A"), "");
  for (const std::string& other : {blanks, underlined, windows, no_affinity}) {
    REQUIRE(other != text);
    CHECK(to_text(read_topology(other, "m").description) == to_text(plain));
  }
}

// n GPUs with one word between any two.
std::string uniform(int n, const std::string& word) {
  std::string out;
  for (int a = 0; a < n; ++a) out += "\tGPU" + std::to_string(a);
  out += "\tCPU Affinity\tNUMA Affinity\n";
  for (int a = 0; a < n; ++a) {
    out += "GPU" + std::to_string(a);
    for (int b = 0; b < n; ++b) out += a == b ? "\t X " : "\t" + word;
    out += "\t0-47\t0\n";
  }
  return out;
}

TEST_CASE("the number of NVLinks suggests the GPU, and whether switches join them") {
  struct Case {
    int gpus;
    std::string word;
    std::int32_t sm;
    std::string preset;  // of the same routes within a node
  };
  for (const Case& c : {Case{8, "NV18", 90, "dgx-h200"}, Case{8, "NV12", 80, "dgx-a100"},
                        Case{4, "NV4", 80, "a100-quad"}, Case{4, "NV6", 90, "gh200-quad"}}) {
    CAPTURE(c.word);
    TopologyDescription found = read_topology(uniform(c.gpus, c.word), "m").description;
    CHECK(found.machine.compute_capability == c.sm);
    TopologyDescription preset = find_description(c.preset).description;
    std::erase_if(preset.routes,
                  [](const RouteLine& route) { return route.where == RouteLine::Where::Between; });
    CHECK(difference(preset, found) == std::nullopt);
  }
  // A name in the same text says more than the number.
  std::string named = "GPU 0: NVIDIA B200 (UUID: GPU-1)\n" + uniform(8, "NV18");
  TopologyDescription b200 = read_topology(named, "m").description;
  CHECK(b200.machine.compute_capability == 100);
  CHECK(b200.ports[0].out_bytes_per_s == 900'000'000'000);
  // Without any NVLink nothing is said about the GPU.
  CHECK(read_topology(uniform(2, "PHB"), "m").description.machine.compute_capability ==
        std::nullopt);
}

TEST_CASE("matrices that contradict themselves are read with doubts, broken ones refused") {
  std::string text = uniform(3, "PIX");
  auto doubts = [&](const std::string& from, const std::string& to) {
    return read_topology(std::regex_replace(text, std::regex(from), to,
                                            std::regex_constants::format_first_only),
                         "m")
        .doubts;
  };
  CHECK(read_topology(text, "m").doubts.empty());
  CHECK(doubts("X \tPIX", "X \tPHB") ==
        std::vector<std::string>{"m:2: GPU0 has PHB to GPU1, which has PIX back",
                                 "m:2: GPU0 and GPU1 have PHB, but the others imply PIX"});
  // The reference's own: SYS between GPUs of one NUMA node.
  CHECK(read_topology(uniform(2, "SYS"), "m").doubts ==
        std::vector<std::string>{"m:2: GPU0 and GPU1 have SYS, but the others imply PHB"});
  CHECK(refusal(uniform(2, "NVX"))
            .find("f:2: expected NV#, PIX, PXB, PHB, NODE or SYS, found 'NVX'") == 0);
  CHECK(refusal("\tGPU0\tGPU1\nGPU0\tX\n") == "f:2: expected 2 cells, found 1");
  CHECK(refusal("\tGPU0\tGPU1\nGPU0\tX\tPIX\n") ==
        "f:1: expected a row for each of its columns, found none for GPU1");
  CHECK(refusal("\tGPU0\tGPU1\nGPU1\tX\tPIX\n") == "f:2: expected the row GPU0, found 'GPU1'");
  CHECK(refusal("\tGPU0\tGPU1\nGPU0\tPIX\tX\n") == "f:2: expected X on the diagonal, found 'PIX'");
  CHECK(refusal("GPU 0: NVIDIA L40S (UUID: x)\n" + uniform(2, "NV4")) ==
        "f:3: expected no NVLink on GPUs of sm89, found NV#");
}

// ---- p2pBandwidthLatencyTest

TEST_CASE("matrices of 8 x RTX 3090: bridges, and copies by way of the host") {
  ReadTopology read = read_topology(read_text_file(kP2p, 1 << 20), kP2p);
  CHECK(read.doubts.empty());
  Topology topology = built(read);
  CHECK(topology.machine().compute_capability == 86);
  // Copies reach 50.85 of 4 x 14.0625 GB/s.
  CHECK(route_of(topology, 0, 1) ==
        "nvlink NVL node0.gpu0.nvlink.out=56.25GB/s node0.gpu1.nvlink.in=56.25GB/s cap=50.85GB/s "
        "1.37us");
  CHECK(route_of(topology, 0, 2) ==
        "host SYS node0.host0=7.865GB/s node0.host2=7.865GB/s cap=6.875GB/s 13.86us");
  CHECK(route_of(topology, 2, 0) ==
        "host SYS node0.host0=7.865GB/s node0.host2=7.865GB/s cap=6.875GB/s 13.86us");
}

// n x n figures, the same for all pairs; where(a, b) replaces one.
template <class At>
std::string table(const std::string& heading, int n, At&& at) {
  std::string out = heading + "\n   D\\D ";
  for (int b = 0; b < n; ++b) out += " " + std::to_string(b);
  for (int a = 0; a < n; ++a) {
    out += "\n " + std::to_string(a);
    for (int b = 0; b < n; ++b) out += " " + std::string(a == b ? "900.00" : at(a, b));
  }
  return out + "\n";
}
const std::string kOneWay = "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)";

TEST_CASE("rates tell NVLink from PCIe, and islands of PCIe from what lies between") {
  auto device = [](const std::string& name) {
    return "Device: 0, NVIDIA " + name + ", pciBusID: 1, pciDeviceID: 0, pciDomainID:0\n";
  };
  auto all = [](const char* figure) { return [figure](int, int) { return figure; }; };
  // More than 18 links to seven peers: switches.
  Topology h100 =
      built(read_topology(device("H100 80GB HBM3") + table(kOneWay, 8, all("374.00")), "m"));
  CHECK(route_of(h100, 3, 5) ==
        "nvlink NVL node0.gpu3.nvlink.out=450GB/s node0.gpu5.nvlink.in=450GB/s cap=374GB/s 0.7us");
  CHECK(h100.machine().nvls);
  Topology quad =
      built(read_topology(device("A100-SXM4-80GB") + table(kOneWay, 4, all("94.00")), "m"));
  CHECK(route_of(quad, 3, 1) == "nvlink NVL node0.link31=100GB/s cap=94GB/s 0.7us");
  // The machine of voipmonitor/rtx6kpro: two chips of four GPUs.
  auto chips = [](int a, int b) { return a / 4 == b / 4 ? "53.50" : "38.00"; };
  Topology rtx = built(read_topology(device("RTX PRO 6000") + table(kOneWay, 8, chips), "m"));
  CHECK(route_of(rtx, 0, 3) ==
        "pcie PIX node0.gpu0.pcie.out=53.5GB/s node0.gpu3.pcie.in=53.5GB/s 0.7us");
  CHECK(route_of(rtx, 6, 1) ==
        "pcie PHB node0.gpu6.pcie.out=53.5GB/s node0.uplink1-out=38GB/s node0.uplink0-in=38GB/s "
        "node0.gpu1.pcie.in=53.5GB/s 0.7us");
  // No islands: 0 and 2 are slow, but both are fast to 1.
  auto odd = [](int a, int b) { return a + b == 2 && a != b ? "20.00" : "50.00"; };
  Topology line = built(read_topology(device("L40S") + table(kOneWay, 3, odd), "m"));
  CHECK(route_of(line, 0, 2).find("cap=20GB/s") != std::string::npos);
}

TEST_CASE("what was measured in both directions only, directions that differ") {
  auto fast_there = [](int a, int b) { return a < b ? "50.00" : "20.00"; };
  CHECK(read_topology(table(kOneWay, 2, fast_there), "m").doubts ==
        std::vector<std::string>{"m:3: 50.000 GB/s from GPU 0 to 1, but 20.000 GB/s back"});
  auto both = [](int, int) { return "101.00"; };
  Topology topology = built(
      read_topology(table("Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)", 2, both), "m"));
  CHECK(route_of(topology, 0, 1).find("=50.5GB/s") != std::string::npos);
  P2pMatrices read = parse_p2p_matrices(table(kOneWay, 2, both), "m");
  CHECK(read.rate(0, 1) == 101'000'000'000);
  CHECK(read.rate_of_both(0, 1) == std::nullopt);
  CHECK(read.latency_ps(0, 1) == std::nullopt);
}

TEST_CASE("texts of p2pBandwidthLatencyTest that are cut or wrong") {
  auto all = [](int, int) { return "10.00"; };
  std::string good = table(kOneWay, 2, all);
  CHECK(refusal(good) == "no error");
  CHECK(refusal(good + "P2P Connectivity Matrix\n  D\\D 0 1\n 0 1 1\n 1 1 2 \n") == "no error");
  CHECK(refusal(good + "P2P Connectivity Matrix\n  D\\D 0 1\n 0 1 2\n") ==
        "f:7: expected 0 or 1, found '2'");
  CHECK(refusal(good + "P2P Connectivity Matrix\n  D\\D 0 1 2\n") ==
        "f:6: expected 2 columns, as above, found 3");
  CHECK(refusal(std::regex_replace(good, std::regex(" 1 10.00 900.00\n"), "")) ==
        "f:3: expected row 1, found the end");
  CHECK(refusal(std::regex_replace(good, std::regex("10.00"), "nan"))
            .find("f:3: expected a positive") == 0);
  CHECK(refusal(std::regex_replace(good, std::regex("10.00"), "1e300")).find("f:3: expected") == 0);
  CHECK(refusal("Bandwidth Matrix\n D\\D 0\n") == "f:2: expected 2 to 256 columns, found 1");
  CHECK(refusal("Bandwidth\nD\\D\n") ==
        "f:2: expected a bandwidth matrix, as printed by p2pBandwidthLatencyTest, found none");
}

// ---- the same nodes on another network

TEST_CASE("fewer NICs are shared by a node's GPUs, a fat tree's uplinks carry less than all NICs") {
  Topology one = find_topology("dgx-h200:2,nics=1");
  CHECK(one.name() == "dgx-h200:2,nics=1");
  CHECK(route_of(one, 3, 8) == "network NET node0.nics-out=50GB/s node1.nics-in=50GB/s 2.7us");
  CHECK(route_of(find_topology("dgx-h200:2,nics=4"), 3, 8) ==
        "network NET node0.nics-out=200GB/s node1.nics-in=200GB/s cap=50GB/s 2.7us");
  CHECK(find_topology("dgx-h200:2,nics=8").node().ports.size() == 2);
  CHECK(route_of(find_topology("dgx-h200:2,oversubscription=2"), 3, 8) ==
        "network NET node0.gpu3.nic.out=50GB/s node0.uplinks-out=200GB/s "
        "node1.uplinks-in=200GB/s node1.gpu0.nic.in=50GB/s 2.7us");
  CHECK(route_of(find_topology("dgx-h200:2,nics=1,oversubscription=4"), 3, 8) ==
        "network NET node0.nics-out=50GB/s node0.uplinks-out=12.5GB/s "
        "node1.uplinks-in=12.5GB/s node1.nics-in=50GB/s 2.7us");
  CHECK(route_of(find_topology("l40s-8:2,nics=2,oversubscription=1"), 0, 9) ==
        "network NET node0.nics-out=50GB/s node1.nics-in=50GB/s cap=25GB/s 2.7us");
  // Every preset of several nodes; its name is a spec of itself.
  for (const PresetInfo& preset : presets()) {
    TopologyDescription description = find_description(preset.name).description;
    if (description.counts != TopologyDescription::Counts::Nodes) continue;
    CAPTURE(preset.name);
    std::string spec = preset.name + ":2,nics=1,oversubscription=2";
    Topology changed = find_topology(spec);
    CHECK(changed.name() == spec);
    CHECK(doubts_about(find_description(spec).description, spec).empty());
    std::int32_t d = description.devices;
    Topology before = find_topology(preset.name + ":2");
    std::int64_t nic = before.route(Rank{0}, Rank{d})
                           .cap_bytes_per_s.value_or(before.resource_bytes_per_s(
                               before.route(Rank{0}, Rank{d}).resources.front()));
    Route route = changed.route(Rank{0}, Rank{d});
    CHECK(changed.resource_bytes_per_s(route.resources[0]) == nic);
    CHECK(changed.resource_bytes_per_s(route.resources[1]) == nic / 2);
    CHECK(changed.route(Rank{0}, Rank{1}).resources.size() ==
          before.route(Rank{0}, Rank{1}).resources.size());
  }
}

TEST_CASE("networks that cannot be") {
  auto error = [](const std::string& spec) {
    try {
      find_topology(spec);
    } catch (const InputError& found) {
      return std::string(found.what());
    }
    return std::string("no error");
  };
  CHECK(error("dgx-h200:2,nics=9") ==
        "topology dgx-h200: expected nics from 1 to the 8 of a node, found 9");
  CHECK(error("dgx-h200:2,nics=0").find("topology: nics: expected NICs of a node") == 0);
  CHECK(error("dgx-h200:2,nics=1,nics=1") == "topology: expected nics once, found it twice");
  CHECK(error("dgx-h200:2,oversubscription=0.5") ==
        "topology: oversubscription: expected 1 or more, found '0.5'");
  CHECK(error("nvswitch:4,nics=1") ==
        "topology nvswitch: expected a machine of several nodes for nics or oversubscription, "
        "found one without a route between nodes");
  CHECK(error("dgx-h200:2,rails=2") ==
        "topology: expected a count after 'dgx-h200:', found '2,rails=2'");
}

// ---- what cannot be so

TEST_CASE("presets are plausible") {
  for (const PresetInfo& preset : presets())
    CHECK(doubts_about(find_description(preset.name).description, preset.name) ==
          std::vector<std::string>{});
}

TEST_CASE("what is implausible, a sentence each") {
  const std::string good =
      "reshard-topology 1\nname x\ndevices 4\ncount nodes\ngpu sm80\nport nvlink 300GB/s\nport nic "
      "25GB/s\ngroup a 0-1\ngroup b 2-3\nroute a via nvlink.out nvlink.in latency 1us transport "
      "nvlink\nroute b via nvlink.out nvlink.in latency 1us transport nvlink\nroute within via "
      "nvlink.out nvlink.in latency 1us transport nvlink\nroute between via nic.out nic.in latency "
      "3us transport network\n";
  auto doubts = [&](const std::string& from, const std::string& to) {
    std::string text =
        std::regex_replace(good, std::regex(from), to, std::regex_constants::format_first_only);
    REQUIRE((from.empty() || text != good));
    return doubts_about(parse_topology(text, "x.topo"), "x.topo");
  };
  using Doubts = std::vector<std::string>;
  CHECK(doubts("", "").empty());
  CHECK(doubts("nvlink 300GB/s", "nvlink 450GB/s") ==
        Doubts{"x.topo:10: 450.000 GB/s is above the 300.000 GB/s of all NVLinks of GPUs of sm80",
               "x.topo:11: 450.000 GB/s is above the 300.000 GB/s of all NVLinks of GPUs of sm80",
               "x.topo:12: 450.000 GB/s is above the 300.000 GB/s of all NVLinks of GPUs of sm80"});
  CHECK(doubts("nic 25GB/s", "nic 25") == Doubts{"x.topo: port nic: 25 B/s is slow for a link; "
                                                 "rates without a unit are in bytes per second"});
  CHECK(
      doubts("nic 25GB/s", "nic 25GB/s in 25")[0] ==
      "x.topo: port nic: 25 B/s is slow for a link; rates without a unit are in bytes per second");
  CHECK(doubts("nic 25GB/s", "nic 50GB/s") ==
        Doubts{"x.topo:13: a NIC of 50.000 GB/s is faster than a slot of PCIe generation "
               "4, which carries 31.508 GB/s"});
  CHECK(doubts("latency 3us", "latency 3s") ==
        Doubts{"x.topo:13: a latency of 3.000 s is above 1 ms"});
  CHECK(doubts("route a via nvlink.out nvlink.in latency 1us",
               "route a via nic.out nvlink.in "
               "latency 1us") ==
        Doubts{"x.topo: device 2: NVLinks of 300.000 GB/s in all, but another has 325.000 GB/s",
               "x.topo: device 3: NVLinks of 300.000 GB/s in all, but another has 325.000 GB/s"});
  CHECK(doubts("route a via nvlink.out nvlink.in latency 1us transport nvlink",
               "route a to b via nvlink.out nvlink.in latency 1us cap 9GB/s transport nvlink") ==
        Doubts{"x.topo: devices 0 and 2: NVL at 9.000 GB/s with latency 1.000 us one way, but NVL "
               "at 300.000 GB/s with latency 1.000 us back"});
  CHECK(doubts("transport nvlink", "transport nvlink class SYS")[0] ==
        "x.topo:10: 300.000 GB/s is above the 31.508 GB/s of 16 lanes of PCIe generation 4, as in "
        "GPUs of sm80");
  CHECK(doubts("port nvlink", "port idle 1GB/s\nport nvlink") ==
        Doubts{"x.topo: port idle: no route crosses it"});
  CHECK(doubts("gpu sm80", "gpu sm80\nreduces nvlink") ==
        Doubts{"x.topo: reduces nvlink: NVLink switches of GPUs of sm80 cannot reduce"});
  CHECK(doubts("gpu sm80", "gpu sm80\nfigure nccl.efficiency 1.2") ==
        Doubts{"x.topo: figure nccl.efficiency: 1.2 is more than the whole rate"});
  CHECK(doubts("latency 3us", "latency 3us cap 30GB/s") ==
        Doubts{"x.topo:13: a cap of 30.000 GB/s is above the 25.000 GB/s that its links carry"});
  CHECK(doubts("latency 3us", "latency 500ns").empty());  // half of NVLink's
  CHECK(doubts("latency 3us", "latency 499ns").size() == 1);
  CHECK(doubts("latency 3us", "latency 0.1us") ==
        Doubts{"x.topo: class NET has a latency of 100.000 ns, less than class NVL with 1.000 us"});
  CHECK(
      doubts("nvlink 300GB/s", "nvlink 25GB/s in 10GB/s") ==
      Doubts{"x.topo: port nvlink: 25.000 GB/s out and 10.000 GB/s in differ too much for one link",
             "x.topo: class NET achieves 25.000 GB/s, more than class NVL with 10.000 GB/s"});
}

}  // namespace
}  // namespace reshard::sim
