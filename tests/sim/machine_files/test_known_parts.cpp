// SPDX-License-Identifier: BSD-3-Clause
// Parts of machines by their names and numbers, against data sheets and NCCL's tables.
#include "sim/machine_files/known_parts.h"

#include <array>
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "sim/machine_files/node_parts.h"
#include "tests/support/unit_sizes.h"

namespace reshard::sim {
namespace {

using test::kGB;

TEST_CASE("a GPU's links by its compute capability, up to the next class") {
  struct Known {
    std::int32_t capability, nvlinks;
    std::int64_t nvlink;
    int pcie;
    std::int64_t nic;
  };
  for (auto [capability, nvlinks, nvlink, pcie, nic] :
       std::initializer_list<Known>{{0, 0, 0, 3, 12'500'000'000},
                                    {52, 0, 0, 3, 12'500'000'000},
                                    {60, 4, 20 * kGB, 3, 12'500'000'000},
                                    {61, 0, 0, 3, 12'500'000'000},
                                    {69, 0, 0, 3, 12'500'000'000},
                                    {70, 6, 25 * kGB, 3, 12'500'000'000},
                                    {72, 6, 25 * kGB, 3, 12'500'000'000},
                                    {75, 2, 25 * kGB, 3, 12'500'000'000},
                                    {80, 12, 25 * kGB, 4, 25 * kGB},
                                    {86, 4, 14'062'500'000, 4, 25 * kGB},
                                    {89, 0, 0, 4, 25 * kGB},
                                    {90, 18, 25 * kGB, 5, 50 * kGB},
                                    {100, 18, 50 * kGB, 5, 50 * kGB},
                                    {103, 18, 50 * kGB, 6, 100 * kGB},
                                    {110, 0, 0, 5, 50 * kGB},
                                    {121, 0, 0, 5, 50 * kGB}}) {
    CAPTURE(capability);
    const GpuClass& found = gpu_class(capability);
    CHECK(found.nvlinks == nvlinks);
    CHECK(found.nvlink_bytes_per_s == nvlink);
    CHECK(found.pcie_generation == pcie);
    CHECK(found.nic_bytes_per_s == nic);
  }
  for (std::int32_t linked : {70, 80, 90, 100, 103}) CHECK(mostly_linked(linked));
  for (std::int32_t alone : {60, 61, 75, 86, 89, 120}) CHECK_FALSE(mostly_linked(alone));
}

TEST_CASE("GPUs are named by whole words, letters behind a number aside") {
  CHECK(gpu_named("NVIDIA H100 80GB HBM3") == 90);
  CHECK(gpu_named("H100") == 90);
  CHECK(gpu_named("Tesla V100S-PCIE-32GB") == 70);
  CHECK(gpu_named("NVIDIA A10G") == 86);
  CHECK(gpu_named("A100") == 80);
  CHECK(gpu_named("NVIDIA L40S") == 89);
  CHECK(gpu_named("an A1000, not an A100") == 80);
  for (const char* other : {"", "A1000", "xA100", "zA100", "aA100", "ZA100", "9A100", "0A100"})
    CHECK_FALSE(gpu_named(other));
  CHECK(gpu_named("(A100)") == 80);
  CHECK(gpu_named("{A100}") == 80);
  CHECK(gpu_of_device("0x2330") == "H100");
  CHECK(gpu_of_device("0x20b7") == "A30");
  CHECK(gpu_of_device("0x0000").empty());
}

TEST_CASE("a GPU as a user names it, with the switches that it mostly has") {
  struct Known {
    const char *given, *name;
    std::int32_t capability;
    std::int64_t to_switches;
  };
  for (auto [given, name, capability, to_switches] :
       std::initializer_list<Known>{{"h100", "H100", 90, 450 * kGB},
                                    {"a100", "A100", 80, 300 * kGB},
                                    {"a100-pcie", "A100-PCIE", 80, 0},
                                    {"h100-nvl", "H100-NVL", 90, 0},
                                    {"a30", "A30", 80, 0},
                                    {"v100", "V100", 70, 0},
                                    {"rtx-4090", "RTX-4090", 89, 0},
                                    {"b200", "B200", 100, 900 * kGB},
                                    {"sm90", "SM90", 90, 450 * kGB},
                                    {"sm50", "SM50", 50, 0},
                                    {"SM999", "SM999", 999, 0}}) {
    CAPTURE(given);
    UsersGpu found = users_gpu(given);
    CHECK(found.name == name);
    CHECK(found.compute_capability == capability);
    CHECK(found.switch_bytes_per_s == to_switches);
  }
  for (const char* unknown : {"", "sm", "sm49", "sm1000", "sm90x", "smx", "gpu", "90"})
    CHECK_THROWS_AS(users_gpu(unknown), InputError);
  CHECK(assumed_switches(users_gpu("h100")) ==
        "NVLink: 18 links x 25.000 GB/s from each GPU to switches, as usual with H100");
}

TEST_CASE("PCIe by generation, and as files write its speed") {
  constexpr std::array<std::int64_t, 6> kReached{187'500'000,   375'000'000,   750'000'000,
                                                 1'500'000'000, 3'000'000'000, 6'000'000'000};
  constexpr std::array<std::int64_t, 6> kLine{250'000'000,   500'000'000,   984'615'384,
                                              1'969'230'769, 3'938'461'538, 7'562'500'000};
  constexpr std::array kSpeeds{"2.5", "5.0", "8.0", "16.0", "32.0", "64.0"};
  for (int generation = 1; generation <= 6; ++generation) {
    std::size_t i = static_cast<std::size_t>(generation) - 1;
    CHECK(pcie_bytes_per_s(generation, 16) == 16 * kReached[i]);
    CHECK(pcie_line_bytes_per_s(generation, 4) == 4 * kLine[i]);
    CHECK(pcie_speed_text(generation) == std::string(kSpeeds[i]) + " GT/s PCIe");
    CHECK(pcie_generation(pcie_speed_text(generation)) == generation);
    CHECK(pcie_generation(std::string(kSpeeds[i]) + " GT/s") == generation);
  }
  CHECK(pcie_bytes_per_s(0, 1) == kReached[0]);
  CHECK(pcie_bytes_per_s(7, 1) == kReached[5]);
  CHECK(pcie_generation("8 GT/s PCIe") == 3);
  for (const char* other : {"", "8", "8.", "8.x GT/s", "9 GT/s", "2 GT/s", "2.6 GT/s", "x GT/s",
                            "65 GT/s", "8GT/s", "640 GT/s"})
    CHECK_FALSE(pcie_generation(other));
}

TEST_CASE("what lies between sockets") {
  auto intel = [](std::int32_t family, std::int32_t model) {
    return socket_bytes_per_s(Cpu::Intel, "x86_64", family, model);
  };
  CHECK(socket_bytes_per_s(Cpu::Intel, "ppc64", 6, 0xCF) == 32 * kGB);
  CHECK(socket_bytes_per_s(Cpu::Amd, "x86_64", 6, 0xCF) == 16 * kGB);
  CHECK(socket_bytes_per_s(Cpu::Other, "x86_64", 6, 0xCF) == 6 * kGB);
  CHECK(intel(6, 0x54) == 6 * kGB);
  CHECK(intel(6, 0x55) == 10 * kGB);
  CHECK(intel(6, 0x8E) == 10 * kGB);
  CHECK(intel(6, 0x8F) == 22 * kGB);
  CHECK(intel(6, 0xCE) == 22 * kGB);
  CHECK(intel(6, 0xCF) == 40 * kGB);
  CHECK(intel(5, 0xCF) == 6 * kGB);
  CHECK(usual_latency_ps(PathClass::NET) == 2'700'000);
  CHECK(usual_latency_ps(PathClass::SYS) == 1'300'000);
  CHECK(usual_latency_ps(PathClass::NVL) == 700'000);
  CHECK(usual_latency_ps(PathClass::PIX) == 700'000);
}

TEST_CASE("a machine is called what its file is") {
  CHECK(machine_name("a.b/my_box-2.v1.xml") == "my_box-2");
  CHECK(machine_name("2x(l40s).txt") == "x-l40s-");
  CHECK(machine_name(".xml") == "xml");
  CHECK(machine_name("a/12_-") == "machine");
  CHECK(machine_name(std::string(80, 'a')) == std::string(64, 'a'));
}

}  // namespace
}  // namespace reshard::sim
