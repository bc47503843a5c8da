// SPDX-License-Identifier: BSD-3-Clause
// Files that leave things out: GPUs without a name or with an unknown one, without NVLink, and NICs
// that carry no tensors. Every assumption is stated, and check never complains about one.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "sim/machine_files/formats.h"
#include "sim/machines/plausible.h"
#include "sim/machines/presets.h"

namespace reshard::sim {
namespace {

// Two slots of a bridge each, one of a GPU, one of a NIC; `gpu` within the GPU's.
std::string cloud(const std::string& gpu, const std::string& attributes = "") {
  std::string out =
      "<system version=\"1\">\n <cpu numaid=\"0\" arch=\"x86_64\" "
      "vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">\n";
  for (int i = 1; i < 3; ++i)
    out += fmt::format(
        "  <pci busid=\"ffff:ff:0{0}.0\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\" "
        "link_width=\"16\">\n"
        "   <pci busid=\"000{0}:00:00.0\" class=\"0x030200\"{2} link_speed=\"32.0 GT/s PCIe\" "
        "link_width=\"16\">{1}</pci>\n"
        "   <pci busid=\"010{0}:00:00.0\" class=\"0x020700\" link_speed=\"32.0 GT/s PCIe\" "
        "link_width=\"16\"/>\n  </pci>\n",
        i, fmt::format(fmt::runtime(gpu), i - 1), attributes);
  return out + " </cpu>\n</system>\n";
}

std::int64_t port(const TopologyDescription& machine, const std::string& name) {
  for (const Port& port : machine.ports)
    if (port.name == name) return port.out_bytes_per_s;
  return 0;
}
bool assumes(const TopologyDescription& machine, const std::string& what) {
  return std::find(machine.assumed.begin(), machine.assumed.end(), what) != machine.assumed.end();
}
std::string error_of(const std::string& text, const std::optional<UsersGpu>& gpu = {}) {
  try {
    read_topology(text, "m", gpu);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string smi(const std::string& named, const std::string& cell, int gpus = 2) {
  std::string out = named;
  for (int i = 0; i < gpus; ++i) out += fmt::format("\tGPU{}", i);
  out += "\tCPU Affinity\tNUMA Affinity\n";
  for (int i = 0; i < gpus; ++i) {
    out += fmt::format("GPU{}", i);
    for (int j = 0; j < gpus; ++j) out += "\t" + (i == j ? "X" : cell);
    out += "\t0-31\t0\n";
  }
  return out;
}

}  // namespace

TEST_CASE("slots that say only their class: the GPU from the user or from its device number") {
  CHECK(error_of(cloud("")) ==
        "m:4: expected a <gpu> within, found none in 2 GPU slots: this is a file for "
        "NCCL_TOPO_FILE; name the GPU (m,gpu=h100), or dump the whole topology with "
        "NCCL_TOPO_DUMP_FILE on the machine");
  CHECK(error_of("<system version=\"1\">\n<cpu numaid=\"0\"><pci busid=\"0\"/></cpu></system>") ==
        "m:1: expected a <gpu> below <cpu> and <pci>, found none, nor a <pci> of a GPU's class: "
        "this is a file for NCCL_TOPO_FILE; dump the whole topology with NCCL_TOPO_DUMP_FILE on "
        "the machine");
  ReadTopology read = read_topology(cloud(""), "m", users_gpu("h100"));
  const TopologyDescription& machine = read.description;
  CHECK(machine.devices == 2);
  CHECK(machine.machine.compute_capability == 90);
  CHECK(port(machine, "nvlink") == 450'000'000'000);
  CHECK(port(machine, "nic") == 50'000'000'000);
  CHECK(assumes(machine, "GPUs: H100; the file gives only the slots of GPUs"));
  CHECK(assumes(machine,
                "NVLink: 18 links x 25.000 GB/s from each GPU to switches, as usual with H100"));
  CHECK(assumes(machine, "NICs: 50.000 GB/s each, as usual with such GPUs"));
  CHECK(read.doubts.empty());
  CHECK(doubts_about(machine, "m").empty());

  TopologyDescription given =
      read_topology(cloud("", " vendor=\"0x10de\" device=\"0x20b2\""), "m").description;
  CHECK(given.machine.compute_capability == 80);
  CHECK(port(given, "nvlink") == 300'000'000'000);
  TopologyDescription alone = read_topology(cloud(""), "m", users_gpu("a10g")).description;
  CHECK(alone.machine.compute_capability == 86);
  CHECK(port(alone, "nvlink") == 0);
}

TEST_CASE("GPUs that mostly have NVLink, without any") {
  ReadTopology read = read_topology(cloud("<gpu dev=\"{}\" sm=\"90\"/>"), "m");
  CHECK(port(read.description, "nvlink") == 0);
  CHECK(assumes(read.description,
                "NVLink: none, as no GPU of m has an <nvlink>; NCCL adds the links that it detects "
                "when it loads such a file"));
  CHECK(read.doubts ==
        std::vector<std::string>{
            "m:4: 2 GPUs of sm90 without an <nvlink>; if the machine has NVLink, name the GPU "
            "(m,gpu=h100) or dump the whole topology with NCCL_TOPO_DUMP_FILE"});
  ReadTopology named = read_topology(cloud("<gpu dev=\"{}\" sm=\"90\"/>"), "m", users_gpu("H100"));
  CHECK(port(named.description, "nvlink") == 450'000'000'000);
  CHECK(named.doubts.empty());
  ReadTopology card =
      read_topology(cloud("<gpu dev=\"{}\" sm=\"90\"/>"), "m", users_gpu("h100-pcie"));
  CHECK((port(card.description, "nvlink") == 0 && card.doubts.empty()));
  CHECK(read_topology(cloud("<gpu dev=\"{}\" sm=\"89\"/>"), "m").doubts.empty());
  CHECK(error_of(cloud("<gpu dev=\"{}\" sm=\"80\"/>"), users_gpu("h100")) ==
        "m:4: expected GPUs of sm90, as given by gpu=H100, found sm80");

  // nvidia-smi topo -mp leaves NVLink out.
  ReadTopology matrix = read_topology(smi("GPU 0: NVIDIA H100 80GB HBM3 (UUID: x)\n", "NODE"), "m");
  CHECK(matrix.doubts ==
        std::vector<std::string>{"m:3: 2 GPUs of sm90 without NV#; if the machine has NVLink, use "
                                 "nvidia-smi topo -m or name the GPU (m,gpu=h100)"});
  ReadTopology linked = read_topology(smi("", "NODE"), "m", users_gpu("h100"));
  CHECK((port(linked.description, "nvlink") == 450'000'000'000 && linked.doubts.empty()));
}

TEST_CASE("one GPU of several without NVLink is said to have none") {
  std::string text = cloud(
      "<gpu dev=\"{}\" sm=\"90\"><nvlink target=\"s\" count=\"18\" "
      "tclass=\"0x068000\"/></gpu>");
  std::size_t first = text.find("<nvlink"), end = text.find("/>", first) + 2;
  text.erase(first, end - first);
  ReadTopology read = read_topology(text, "m");
  CHECK(read.doubts == std::vector<std::string>{"m:4: GPU 0 has no NVLink to switches, but others "
                                                "have 450.000 GB/s; assumed to have none"});
}

TEST_CASE("a user's name of a GPU") {
  CHECK(users_gpu("h100").compute_capability == 90);
  CHECK(users_gpu("rtx-4090").compute_capability == 89);
  CHECK(users_gpu("sm100").switch_bytes_per_s == 900'000'000'000);
  CHECK(users_gpu("V100").switch_bytes_per_s == 0);
  CHECK_THROWS_WITH(users_gpu("x9"),
                    "topology: gpu: expected the name of a GPU such as h100, "
                    "a100-pcie or sm90, found 'x9'");
  CHECK_THROWS_WITH(find_description("dgx-h100,gpu=h100"),
                    "topology: gpu=H100: expected a format that does not name its GPUs, found "
                    "dgx-h100.topo, which can");
  CHECK_THROWS_WITH(find_description("dgx-h100,gpu=h100,gpu=a100"),
                    "topology: expected gpu once, found it twice");
}

TEST_CASE("names of GPUs") {
  const std::pair<const char*, int> names[] = {{"Tesla P40", 61},
                                               {"Tesla P4", 61},
                                               {"Tesla M40 24GB", 52},
                                               {"GTX 1080 Ti", 61},
                                               {"NVIDIA TITAN RTX", 75},
                                               {"Quadro RTX 8000", 75},
                                               {"NVIDIA A2", 86},
                                               {"NVIDIA A16", 86},
                                               {"NVIDIA RTX A2000", 86},
                                               {"GeForce RTX 3070", 86},
                                               {"GeForce RTX 4070", 89},
                                               {"RTX 5070 Ti", 120},
                                               {"RTX 4000 Ada", 89},
                                               {"RTX 5000 Ada", 89},
                                               {"NVIDIA GB10", 121},
                                               {"NVIDIA Thor", 110},
                                               {"NVIDIA A10G", 86},
                                               {"NVIDIA A100-SXM4-80GB", 80},
                                               {"NVIDIA L40S", 89},
                                               {"NVIDIA L4", 89},
                                               {"NVIDIA H100 NVL", 90},
                                               {"NVIDIA GH200 480GB", 90},
                                               {"Tesla T4", 75},
                                               {"NVIDIA RTX 6000 Ada", 89},
                                               {"Quadro RTX 6000", 75},
                                               {"NVIDIA RTX PRO 6000", 120},
                                               {"Tesla V100-SXM2-32GB", 70}};
  for (auto [name, sm] : names) {
    CAPTURE(name);
    CHECK(gpu_named(name) == sm);
  }
  for (const char* name : {"NVIDIA X1000", "Quadro P4000", "T400 4GB", "Foo", "SA100"}) {
    CAPTURE(name);
    CHECK_FALSE(gpu_named(name));
  }
  TopologyDescription p40 =
      read_topology(smi("GPU 0: Tesla P40 (UUID: x)\n", "PHB"), "m").description;
  CHECK(p40.machine.compute_capability == 61);
  CHECK(port(p40, "pcie") == 12'000'000'000);
  TopologyDescription unknown =
      read_topology(smi("GPU 0: Tesla X9 (UUID: GPU-0)\n", "PHB"), "m").description;
  CHECK_FALSE(unknown.machine.compute_capability);
  CHECK(assumes(unknown, "GPUs: 'Tesla X9' is not known"));
  CHECK(port(unknown, "pcie") == 24'000'000'000);
}

TEST_CASE("a GPU has one NIC, at its rate") {
  // A tray of GB200: NICs far from all, two of them ports of one card.
  std::string tray =
      "GPU 0: NVIDIA GB200\n\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tNIC2\tNIC3\tNIC4\t"
      "NIC5\n";
  for (int i = 0; i < 10; ++i) {
    tray += i < 4 ? fmt::format("GPU{}", i) : fmt::format("NIC{}", i - 4);
    for (int j = 0; j < 10; ++j)
      tray += i == j                                     ? "\tX"
              : i < 4 && j < 4                           ? "\tNV18"
              : (i == 6 && j == 7) || (i == 7 && j == 6) ? "\tPIX"
                                                         : "\tSYS";
    tray += "\n";
  }
  ReadTopology read = read_topology(tray, "m");
  CHECK(port(read.description, "nic") == 50'000'000'000);
  CHECK(assumes(
      read.description,
      "NICs: 4 of 6 are assumed to carry tensors, but not the 2 that are ports of one card"));
  CHECK(doubts_about(read.description, "m").empty());

  auto box = [](const std::string& nets) {
    std::string out = "<system version=\"1\"><cpu numaid=\"0\" vendor=\"AuthenticAMD\">";
    for (int i = 0; i < 2; ++i)
      out += fmt::format(
          "<pci busid=\"{0}\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" "
          "link_width=\"16\"><gpu dev=\"{0}\" sm=\"89\"/></pci>",
          i);
    return out + "<nic>" + nets + "</nic></cpu></system>";
  };
  auto net = [](const char* name, int speed) {
    return fmt::format("<net name=\"{}\" dev=\"0\" speed=\"{}\"/>", name, speed);
  };
  // Five for four, and so three for two: no GPU sends over more than one.
  std::string fast = net("mlx5_0", 200000);
  CHECK(port(read_topology(box(fast + fast + fast), "m").description, "nic") == 25'000'000'000);
  ReadTopology managed = read_topology(box(fast + fast + net("eno1", 10000)), "m");
  CHECK(port(managed.description, "nic") == 25'000'000'000);
  CHECK(
      assumes(managed.description,
              "NICs: 1 far slower than the 25.000 GB/s of others is assumed to carry no tensors"));
  ReadTopology home = read_topology(box(net("enp1s0", 10000) + net("enp2s0", 10000) +
                                        net("tailscale0", 10000) + net("wlp9s9", 4000)),
                                    "m");
  CHECK(port(home.description, "nic") == 1'250'000'000);
  CHECK(assumes(home.description, "NICs: tailscale0, wlp9s9 are assumed to carry no tensors"));
}

TEST_CASE("two clear clusters of rates are two islands") {
  auto matrix = [](double within, double across) {
    std::string out =
        "Unidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n   D\\D     0      1      "
        "2      3\n";
    for (int i = 0; i < 4; ++i) {
      out += fmt::format("     {}", i);
      for (int j = 0; j < 4; ++j)
        out += fmt::format(" {:6.2f}",
                           i == j ? 800.0 : (i / 2 == j / 2 ? within : across) + 0.01 * (i + j));
      out += "\n";
    }
    return out;
  };
  for (auto [within, across] : {std::pair{26.0, 22.0}, {52.0, 11.0}, {24.0, 12.0}}) {
    CAPTURE(within, across);
    TopologyDescription machine = read_topology(matrix(within, across), "m").description;
    REQUIRE(machine.groups.size() == 2);
    CHECK(machine.groups[0].name == "island0");
    CHECK(machine.groups[0].devices == std::vector<std::int32_t>{0, 1});
    CHECK(machine.groups[1].devices == std::vector<std::int32_t>{2, 3});
  }
  // Noise is no cluster.
  CHECK(read_topology(matrix(24.0, 23.6), "m").description.groups.empty());
}

TEST_CASE("files that are no machines") {
  CHECK(error_of("{\n \"traceEvents\": []}\n") ==
        "m:1: expected a topology ('reshard-topology 1' as the first line), NCCL's XML "
        "(NCCL_TOPO_DUMP_FILE), p2pBandwidthLatencyTest output or nvidia-smi topo -m output, found "
        "what looks like a Chrome trace, such as torch.profiler (Kineto) or Perfetto writes");
  CHECK(error_of("<graphs version=\"1\"/>") ==
        "m:1: expected <system>, as NCCL_TOPO_DUMP_FILE writes it, found <graphs>: what looks like "
        "NCCL graphs (NCCL_GRAPH_DUMP_FILE); the file of NCCL_TOPO_DUMP_FILE can be read");
  CHECK(error_of("<system version=\"2\"><cpu/></system>") ==
        "m:1: expected version=\"1\", found '2': what looks like an RCCL topology of AMD GPUs");
  CHECK(error_of("<system version=\"1\"><cpu><xgmi/></cpu></system>") ==
        "m:1: expected version=\"1\", found '1': what looks like an RCCL topology of AMD GPUs");
}

}  // namespace reshard::sim
