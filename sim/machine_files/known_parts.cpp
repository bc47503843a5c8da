// SPDX-License-Identifier: BSD-3-Clause
#include "sim/machine_files/known_parts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "core/base/ids.h"

namespace reshard::sim {
namespace {

constexpr std::int64_t kMB = 1'000'000, kGB = 1'000'000'000;

// NICs: 100 Gb/s beside V100, 200 beside A100, 400 beside H100 and B200, 800 beside B300.
constexpr std::int64_t kHdr = 25 * kGB, kNdr = 50 * kGB;
constexpr std::array<GpuClass, 10> kGpus{{{60, 20 * kGB, 4, 3, 12'500 * kMB},
                                          {70, 25 * kGB, 6, 3, 12'500 * kMB},
                                          {75, 25 * kGB, 2, 3, 12'500 * kMB},
                                          {80, 25 * kGB, 12, 4, kHdr},
                                          {86, 14'062'500'000, 4, 4, kHdr},
                                          {89, 0, 0, 4, kHdr},
                                          {90, 25 * kGB, 18, 5, kNdr},
                                          {100, 50 * kGB, 18, 5, kNdr},
                                          {103, 50 * kGB, 18, 6, 2 * kNdr},
                                          {120, 0, 0, 5, kNdr}}};

// Longer names before those that they contain.
constexpr std::array<std::pair<std::string_view, std::int32_t>, 32> kNames{
    {{"GB300", 103},    {"GB200", 100},   {"B300", 103},    {"B200", 100},    {"B100", 100},
     {"GH200", 90},     {"H800", 90},     {"H200", 90},     {"H100", 90},     {"H20", 90},
     {"A100", 80},      {"A800", 80},     {"A30", 80},      {"V100", 70},     {"P100", 60},
     {"L40", 89},       {"L20", 89},      {"L4", 89},       {"6000 Ada", 89}, {"RTX PRO", 120},
     {"A6000", 86},     {"A5000", 86},    {"A40", 86},      {"A10", 86},      {"RTX 5090", 120},
     {"RTX 5080", 120}, {"RTX 4090", 89}, {"RTX 4080", 89}, {"RTX 3090", 86}, {"RTX 3080", 86},
     {"RTX 2080", 75},  {"T4", 75}}};

// By generation, from 1: gigatransfers a second x 10, and per lane what copies reach and line rate.
struct Pcie {
  int transfers;
  std::int64_t reached, line;
};
constexpr std::array<Pcie, 6> kPcie{{{25, 187'500'000, 250 * kMB},
                                     {50, 375 * kMB, 500 * kMB},
                                     {80, 750 * kMB, 984'615'384},
                                     {160, 1'500 * kMB, 1'969'230'769},
                                     {320, 3'000 * kMB, 3'938'461'538},
                                     {640, 6'000 * kMB, 7'562'500'000}}};

const Pcie& pcie(int generation) { return kPcie[to_index(std::clamp(generation, 1, 6) - 1)]; }

}  // namespace

const GpuClass& gpu_class(std::int32_t compute_capability) {
  const GpuClass* found = &kGpus.front();
  for (const GpuClass& row : kGpus)
    if (row.compute_capability <= compute_capability) found = &row;
  return *found;
}

std::optional<std::int32_t> gpu_named(std::string_view text) {
  for (auto [name, compute_capability] : kNames)
    if (text.find(name) != std::string_view::npos) return compute_capability;
  return std::nullopt;
}

std::int64_t pcie_bytes_per_s(int generation, std::int64_t lanes) {
  return pcie(generation).reached * lanes;
}

std::int64_t pcie_line_bytes_per_s(int generation, std::int64_t lanes) {
  return pcie(generation).line * lanes;
}

std::optional<int> pcie_generation(std::string_view link_speed) {
  int whole = 0, tenths = 0;
  auto [end, error] =
      std::from_chars(link_speed.data(), link_speed.data() + link_speed.size(), whole);
  if (error != std::errc()) return std::nullopt;
  std::string_view rest = link_speed.substr(to_index(end - link_speed.data()));
  if (rest.size() >= 2 && rest[0] == '.' && rest[1] >= '0' && rest[1] <= '9') {
    tenths = rest[1] - '0';
    rest.remove_prefix(2);
  }
  if (!rest.starts_with(" GT/s") || whole > 64) return std::nullopt;
  for (std::size_t i = 0; i < kPcie.size(); ++i)
    if (kPcie[i].transfers == 10 * whole + tenths) return static_cast<int>(i) + 1;
  return std::nullopt;
}

std::string pcie_speed_text(int generation) {
  int transfers = pcie(generation).transfers;
  return std::to_string(transfers / 10) + "." + std::to_string(transfers % 10) + " GT/s PCIe";
}

std::int64_t socket_bytes_per_s(Cpu cpu, std::string_view arch, std::int32_t family,
                                std::int32_t model) {
  if (arch == "ppc64") return 32 * kGB;
  if (cpu == Cpu::Amd) return 16 * kGB;
  if (cpu != Cpu::Intel) return 6 * kGB;
  if (family == 6 && model >= 0xCF) return 40 * kGB;  // Emerald Rapids
  if (family == 6 && model >= 0x8F) return 22 * kGB;  // Sapphire Rapids
  if (family == 6 && model >= 0x55) return 10 * kGB;  // Skylake
  return 6 * kGB;
}

// Over NVLink and the network NCCL 2.30's step of its LL protocol; over PCIe what was measured on 8
// x RTX PRO 6000 (voipmonitor/rtx6kpro): 0.71-0.74 us in one chip's switches, 1.27-1.36 across.
std::int64_t usual_latency_ps(PathClass path_class) {
  if (path_class == PathClass::NET) return 2'700'000;
  return path_class == PathClass::SYS ? 1'300'000 : 700'000;
}

}  // namespace reshard::sim
