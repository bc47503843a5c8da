// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include <regex>

#include "sim/machine_files/writers/writers.h"
#include "sim/machines/plausible.h"
#include "sim/machines/presets.h"
#include "sim/transport/nccl/nccl_graph.h"
#include "tests/sim/machine_files/machine_files.h"

namespace reshard::sim {
namespace {

// Two GPUs straight under a socket's ports each, as small AMD boxes of PCIe have it.
std::string box(const std::string& more = "", const std::string& cpu = "") {
  std::string out = "<system version=\"1\">\n";
  for (int socket = 0; socket < 2; ++socket) {
    out += "<cpu numaid=\"" + std::to_string(socket) +
           "\" arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"25\" modelid=\"1\"" + cpu + ">\n";
    for (int gpu = 2 * socket; gpu < 2 * socket + 2; ++gpu)
      out +=
          "<pci busid=\"0000:0" + std::to_string(gpu) +
          ":00.0\" class=\"0x030000\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"" +
          std::to_string(gpu) + "\" sm=\"86\" gdr=\"0\">" + (gpu == 0 ? more : "") +
          "</gpu></pci>\n";
    out += "</cpu>\n";
  }
  return out + "</system>\n";
}

Topology read(const std::string& text, std::int32_t nodes = 1) {
  TopologyDescription description = read_topology(text, "box.xml").description;
  std::optional<std::int64_t> count;
  if (nodes > 1) count = nodes;
  return build_topology(description, count);
}

TEST_CASE("a dump of 8 x H100: what the preset says, but for what a dump does not say") {
  ReadTopology dump = read_topology(read_text_file("traces/topologies/nccl-8xH100.xml", 1 << 20),
                                    "traces/topologies/nccl-8xH100.xml");
  CHECK(dump.doubts.empty());
  CHECK(difference(dump.description, find_description("dgx-h200").description) == std::nullopt);
  CHECK(dump.description.machine.compute_capability == 90);
  CHECK(dump.description.machine.cpu == Cpu::Intel);
  CHECK(dump.description.machine.nvls);
  CHECK(dump.description.assumed ==
        std::vector<std::string>{"NVLink: 25.000 GB/s per link and direction, line rate of sm90",
                                 "NVLink switches reduce (NVLS), as those of sm90 and later do",
                                 "network: every NIC reaches every other at its full rate",
                                 "latencies: NVL 700.000 ns, NET 2.700 us"});
  // Found by content, under any name, and multiplied like a preset.
  CHECK(find_topology("traces/topologies/nccl-8xH100.xml:4").devices() == 32);
}

TEST_CASE("PCIe alone: classes and rates as NCCL derives them") {
  // PHB within a socket; between sockets 16 GB/s in each direction, which one flow can use alone.
  Topology topology = read(box());
  CHECK(route_of(topology, 0, 1) ==
        "pcie PHB node0.gpu0.pcie.out=24GB/s node0.gpu1.pcie.in=24GB/s 0.7us");
  CHECK(route_of(topology, 0, 2) ==
        "pcie SYS node0.gpu0.pcie.out=24GB/s node0.socket-link=32GB/s node0.gpu2.pcie.in=24GB/s "
        "1.3us");
  // Four GPUs of 24 GB/s, two on each side, send at most 2 x 48: a wider link is left out.
  CHECK(route_of(read(box("", " reshard_rate=\"95.9GB/s\"")), 0, 2).find("socket-link=95.9GB/s") !=
        std::string::npos);
  CHECK(route_of(read(box("", " reshard_rate=\"96GB/s\"")), 0, 2).find("socket") ==
        std::string::npos);
}

TEST_CASE("bridges: one is PIX, several are PXB, what carries less than its GPUs is shared") {
  auto pci = [](const std::string& attributes, const std::string& inner) {
    return "<pci class=\"0x060400\" link_width=\"16\" " + attributes + ">" + inner + "</pci>";
  };
  auto gpu = [&](int dev) {
    return "<pci busid=\"" + std::to_string(dev) +
           "\" link_speed=\"8 GT/s\" link_width=\"16\"><gpu dev=\"" + std::to_string(dev) +
           "\" sm=\"70\"/></pci>";
  };
  const std::string gen3 = "link_speed=\"8.0 GT/s PCIe\"", gen4 = "link_speed=\"16.0 GT/s PCIe\"";
  // 0 and 1 share a bridge of 12 GB/s, which another above repeats; 2 and 3 one of 24, which they
  // cannot fill; 4 hangs from the bridge above both.
  std::string text =
      "<system version=\"1\"><cpu numaid=\"0\" vendor=\"GenuineIntel\">" +
      pci(gen4, pci(gen4, pci(gen3, gpu(0) + gpu(1))) + pci(gen4, gpu(2) + gpu(3)) + gpu(4)) +
      gpu(5) + "</cpu></system>";
  Topology topology = read(text);
  auto path = [&](std::int32_t a, std::int32_t b) {
    std::string out(reshard::text(topology.rule(Rank{a}, Rank{b}).path_class()));
    for (ResourceId id : topology.route(Rank{a}, Rank{b}).resources)
      if (std::string name = topology.resource_name(id); name.find("pcie") == std::string::npos)
        out += " " + name.substr(name.find('.') + 1) + "=" +
               figure_text(FigureUnit::Rate, topology.resource_bytes_per_s(id));
    return out;
  };
  CHECK(path(0, 1) == "PIX");
  CHECK(path(2, 3) == "PIX");
  CHECK(path(0, 2) == "PXB uplink1-out=12GB/s");
  CHECK(path(2, 0) == "PXB uplink1-in=12GB/s");
  CHECK(path(2, 4) == "PXB");
  // The outer bridge carries 24 GB/s of the 60 that five GPUs send.
  CHECK(path(0, 5) == "PHB uplink1-out=12GB/s uplink0-out=24GB/s");
  CHECK(path(5, 3) == "PHB uplink0-in=24GB/s");
}

TEST_CASE("NVLinks between GPUs: a bridge of two is a port, any other graph a link per direction") {
  std::string two = "<nvlink target=\"0000:01:00.0\" count=\"4\" tclass=\"0x030000\"/>";
  ReadTopology bridge = read_topology(box(two), "box.xml");
  CHECK(route_of(build_topology(bridge.description, std::nullopt), 1, 0) ==
        "nvlink NVL node0.gpu1.nvlink.out=56.25GB/s node0.gpu0.nvlink.in=56.25GB/s 0.7us");
  // GPU 1 does not say the link back.
  CHECK(bridge.doubts ==
        std::vector<std::string>{
            "box.xml:3: GPU 0 has 56.250 GB/s of NVLink to GPU 1, which has 0 B/s back"});
  Topology three =
      read(box(two + "<nvlink target=\"0000:02:00.0\" count=\"2\" tclass=\"0x030000\"/>"));
  CHECK(route_of(three, 1, 0) == "nvlink NVL node0.link10=56.25GB/s 0.7us");
  CHECK(route_of(three, 0, 2) == "nvlink NVL node0.link02=28.125GB/s 0.7us");
}

TEST_CASE("NICs: those nearest to a GPU count, no faster than their slot, few are shared") {
  auto with_nics = [](const std::string& nics) {
    std::string text = box();
    return text.insert(text.find("</cpu>"), nics);
  };
  auto nic = [](const std::string& speed, const std::string& slot) {
    return "<pci link_speed=\"" + slot + "\" link_width=\"16\"><nic><net dev=\"0\" speed=\"" +
           speed + "\"/></nic></pci>";
  };
  Topology one = read(with_nics(nic("100000", "16.0 GT/s PCIe")), 2);
  CHECK(route_of(one, 3, 4) == "network NET node0.nics-out=12.5GB/s node1.nics-in=12.5GB/s 2.7us");
  Topology two = read(with_nics(nic("100000", "8.0 GT/s PCIe") + nic("200000", "16 GT/s")), 2);
  CHECK(route_of(two, 0, 4) ==
        "network NET node0.nics-out=37.5GB/s node1.nics-in=37.5GB/s cap=25GB/s 2.7us");
  ReadTopology fast = read_topology(with_nics(nic("400000", "16.0 GT/s PCIe")), "box.xml");
  CHECK(fast.doubts == std::vector<std::string>{
                           "box.xml:5: a NIC of 50.000 GB/s is faster than its PCIe slot, which "
                           "carries 31.508 GB/s"});
  CHECK(fast.description.shared.back().bytes_per_s == 31'507'692'304);
}

TEST_CASE("files that are no dump of one node") {
  CHECK(refusal("<system version=\"1\"><cpu") ==
        "f:1: expected XML, found: Error parsing start element tag");
  CHECK(refusal("\n<graphs/>") ==
        "f:2: expected <system>, as NCCL_TOPO_DUMP_FILE writes it, found <graphs>: what looks like "
        "NCCL graphs (NCCL_GRAPH_DUMP_FILE); the file of NCCL_TOPO_DUMP_FILE can be read");
  CHECK(refusal("<system version=\"2\"/>") ==
        "f:1: expected version=\"1\", found '2': what looks like an RCCL topology of AMD GPUs");
  CHECK(refusal("<system version=\"1\"/>") ==
        "f:1: expected a <gpu> below <cpu> and <pci>, found none, nor a <pci> of a GPU's class: "
        "this is a file for NCCL_TOPO_FILE; dump the whole topology with NCCL_TOPO_DUMP_FILE on "
        "the machine");
  CHECK(refusal(std::regex_replace(box(), std::regex("dev=\"3\""), "dev=\"2\"")) ==
        "f:8: expected each dev once, found a second GPU with dev 2");
  CHECK(refusal(std::regex_replace(box(), std::regex("sm=\"86\""), "sm=\"x\"")) ==
        "f:3: expected <gpu> with sm, from 30 to 999, found 'x'");
  CHECK(
      refusal(box("<nvlink target=\"0000:09:00.0\" count=\"4\" tclass=\"0x030000\"/>")) ==
      "f:3: expected the busid of a GPU, or tclass=\"0x068000\", as target, found '0000:09:00.0'");
  CHECK(refusal(box("<nvlink target=\"x\" count=\"0\" tclass=\"0x068000\"/>")) ==
        "f:3: expected <nvlink> with count, from 1 to 1000, found '0'");
  CHECK(refusal(
            box("<nvlink target=\"x\" count=\"1\" tclass=\"0x068000\" reshard_rate=\"2e15\"/>")) ==
        "f:3: expected a reshard_rate of at most 1e15 B/s, found '2e15'");
  CHECK(refusal(std::regex_replace(box(), std::regex("numaid=\"1\""),
                                   "numaid=\"1\" host_hash=\"9\"")) ==
        "f:6: expected one host, by host_hash, found a second one");
}

TEST_CASE("XML that wants memory or depth is refused, entities are not replaced") {
  std::string deep = "<system version=\"1\"><cpu numaid=\"0\">";
  for (int i = 0; i < 100'000; ++i) deep += "<pci>";
  CHECK(refusal(deep).find("expected XML, found") != std::string::npos);
  for (int i = 0; i < 100'000; ++i) deep += "</pci>";
  CHECK(refusal(deep + "</cpu></system>") ==
        "f:1: expected at most 64 levels of elements, found more");
  CHECK(refusal("<" + std::string(5 << 20, 'x')) == "f: expected at most 4 MiB of XML, found more");
  std::string bomb =
      "<!DOCTYPE system [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;\">]>\n"
      "<system version=\"&b;\"/>";
  CHECK(refusal(bomb) == "f:2: expected version=\"1\", found '&b;'");
  std::string many = "<system version=\"1\"><cpu numaid=\"0\">";
  for (int i = 0; i < 300; ++i) many += "<gpu dev=\"" + std::to_string(i) + "\" sm=\"90\"/>";
  CHECK(refusal(many + "</cpu></system>") == "f:1: expected at most 256 GPUs, found more");
}

TEST_CASE("what is written is read back as the same routes, rates and classes") {
  int said = 0;
  for (const PresetInfo& preset : presets()) {
    CAPTURE(preset.name);
    TopologyDescription description = find_description(preset.name).description;
    std::int32_t sm = nccl::gpus_of(build_topology(description, std::nullopt)).compute_capability;
    // Copies that a host stages are no words of NCCL's.
    if (preset.name == "pcie-8x3090") {
      CHECK_THROWS_WITH(to_nccl_xml(description, sm),
                        Catch::StartsWith("topology pcie-8x3090: expected routes that NCCL's XML "
                                          "can express, found others: from device 0 to 2 host"));
      continue;
    }
    std::string xml = to_nccl_xml(description, sm);
    ReadTopology again = read_topology(xml, preset.name + ".xml");
    CHECK(difference(description, again.description) == std::nullopt);
    CHECK(again.doubts.empty());
    CHECK(again.description.machine.compute_capability == sm);
    CHECK(to_nccl_xml(again.description, sm) == xml);
    ++said;
  }
  CHECK(said == 14);
  // Text says all.
  for (const PresetInfo& preset : presets()) {
    TopologyDescription description = find_description(preset.name).description;
    TopologyDescription again = parse_topology(to_text(description), "again");
    CHECK(build_topology(again, std::nullopt).fingerprint() ==
          build_topology(description, std::nullopt).fingerprint());
  }
}

TEST_CASE("more GPUs than one PCI domain has numbers for") {
  TopologyDescription description = parse_topology(
      "reshard-topology 1\nname m\ndevices 256\nport pcie 24GB/s\n"
      "route within via pcie.out pcie.in latency 1us transport pcie class PHB\n",
      "m");
  std::string xml = to_nccl_xml(description, 80);
  CHECK(xml.find("0000:ff:00.0") != std::string::npos);
  CHECK(xml.find("0001:00:00.0") != std::string::npos);
  CHECK(difference(description, read_topology(xml, "m.xml").description) == std::nullopt);
}

TEST_CASE("difference sees rates, classes, caps, what is shared, and no names") {
  const std::string text =
      "reshard-topology 1\nname x\ndevices 4\nport p 10GB/s\nshared s 15GB/s\ngroup a 0-1\ngroup b "
      "2-3\nroute a b via p.out s p.in latency 1us transport pcie class SYS\nroute within via "
      "p.out "
      "p.in latency 1us transport pcie\n";
  auto changed = [&](const std::string& from, const std::string& to) {
    return difference(parse_topology(text, "one"),
                      parse_topology(std::regex_replace(text, std::regex(from), to), "other"))
        .value_or("same");
  };
  CHECK(changed("latency 1us", "latency 9us") == "same");
  CHECK(changed(" s ", " t ") == "same");
  CHECK(changed("port p 10", "port p 9") ==
        "from device 0 to 1 pcie PIX at 10.000 GB/s, not pcie PIX at 9.000 GB/s");
  CHECK(changed("class SYS", "class PHB") ==
        "from device 0 to 2 pcie SYS at 10.000 GB/s, not pcie PHB at 10.000 GB/s");
  CHECK(changed("latency 1us transport pcie\n", "latency 1us cap 1GB/s transport pcie\n") ==
        "from device 0 to 1 pcie PIX at 10.000 GB/s, not pcie PIX at 1.000 GB/s");
  CHECK(changed("s 15GB/s", "s 14GB/s") ==
        "15.000 GB/s shared by 8 pairs of devices, the first from device 0 to 2");
  CHECK(changed("devices 4", "devices 5") == "4 devices, not 5");
}

TEST_CASE("as a graph: a switch is a vertex, a link an edge, a resource a vertex of both ways") {
  CHECK(to_dot(find_description("nvswitch:3").description).find("shape=ellipse") !=
        std::string::npos);
  std::string quad = to_dot(find_description("a100-quad").description);
  CHECK(quad.find("\"gpu0\" -- \"gpu3\" [label=\"NVL 100.000 GB/s\"];") != std::string::npos);
  CHECK(quad.find("\"gpu3\" -- \"gpu0\"") == std::string::npos);
  CHECK(quad.find("\"gpu2\" -- \"network\" [label=\"nic 25.000 GB/s\"];") != std::string::npos);
  std::string l40s = to_dot(find_description("l40s-8").description);
  CHECK(l40s.find("\"gpu0\" -- \"uplink0\" [label=\"pcie 22.500 GB/s\"];") != std::string::npos);
  CHECK(l40s.find("\"socket-link\" -- \"uplink3\"") != std::string::npos);
  CHECK(l40s.find("\"uplink0-out\"") == std::string::npos);
  CHECK(l40s.find("\"network\" -- \"nics\"") != std::string::npos);
}

}  // namespace
}  // namespace reshard::sim
