// SPDX-License-Identifier: BSD-3-Clause
#include "sim/machine_files/known_parts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/ids.h"
#include "core/base/units.h"

namespace reshard::sim {
namespace {

constexpr std::int64_t kMB = 1'000'000, kGB = 1'000'000'000;

// NICs: 100 Gb/s with V100, 200 with A100, 400 with H100 and B200, 800 with B300.
constexpr std::int64_t kHdr = 25 * kGB, kNdr = 50 * kGB;
constexpr std::array<GpuClass, 13> kGpus{{{50, 0, 0, 3, 12'500 * kMB},
                                          {60, 20 * kGB, 4, 3, 12'500 * kMB},
                                          {61, 0, 0, 3, 12'500 * kMB},
                                          {70, 25 * kGB, 6, 3, 12'500 * kMB},
                                          {75, 25 * kGB, 2, 3, 12'500 * kMB},
                                          {80, 25 * kGB, 12, 4, kHdr},
                                          {86, 14'062'500'000, 4, 4, kHdr},
                                          {89, 0, 0, 4, kHdr},
                                          {90, 25 * kGB, 18, 5, kNdr},
                                          {100, 50 * kGB, 18, 5, kNdr},
                                          {103, 50 * kGB, 18, 6, 2 * kNdr},
                                          {110, 0, 0, 5, kNdr},
                                          {120, 0, 0, 5, kNdr}}};

// Names match whole words, which may end in further letters (A10G, L40S). A name that begins with
// another one precedes it, unless both mean the same.
constexpr std::array<std::pair<std::string_view, std::int32_t>, 66> kNames{
    {{"GB300", 103},    {"GB200", 100},    {"GB10", 121},     {"B300", 103},     {"B200", 100},
     {"B100", 100},     {"GH200", 90},     {"H800", 90},      {"H200", 90},      {"H100", 90},
     {"H20", 90},       {"A100", 80},      {"A800", 80},      {"A30", 80},       {"V100", 70},
     {"V100S", 70},     {"TITAN V", 70},   {"P100", 60},      {"P40", 61},       {"P6", 61},
     {"P4", 61},        {"M40", 52},       {"M60", 52},       {"L40", 89},       {"L20", 89},
     {"L4", 89},        {"6000 Ada", 89},  {"5880 Ada", 89},  {"5000 Ada", 89},  {"4500 Ada", 89},
     {"4000 Ada", 89},  {"2000 Ada", 89},  {"RTX PRO", 120},  {"A6000", 86},     {"A5500", 86},
     {"A5000", 86},     {"A4500", 86},     {"A4000", 86},     {"A2000", 86},     {"A40", 86},
     {"A16", 86},       {"A10", 86},       {"A2", 86},        {"RTX 5090", 120}, {"RTX 5080", 120},
     {"RTX 5070", 120}, {"RTX 5060", 120}, {"RTX 4090", 89},  {"RTX 4080", 89},  {"RTX 4070", 89},
     {"RTX 4060", 89},  {"RTX 3090", 86},  {"RTX 3080", 86},  {"RTX 3070", 86},  {"RTX 3060", 86},
     {"RTX 2080", 75},  {"RTX 2070", 75},  {"TITAN RTX", 75}, {"RTX 8000", 75},  {"RTX 6000", 75},
     {"RTX 5000", 75},  {"GTX 1080", 61},  {"GTX 1070", 61},  {"TITAN Xp", 61},  {"T4", 75},
     {"Thor", 110}}};

// Device numbers of NVIDIA's PCI functions (vendor 0x10de).
constexpr std::array<std::pair<std::string_view, std::string_view>, 22> kDevices{
    {{"0x1db1", "V100"},      {"0x1db4", "V100-PCIE"}, {"0x1db5", "V100"}, {"0x1db8", "V100"},
     {"0x1eb8", "T4"},        {"0x20b0", "A100"},      {"0x20b2", "A100"}, {"0x20b5", "A100-PCIE"},
     {"0x20f1", "A100-PCIE"}, {"0x20b7", "A30"},       {"0x20f3", "A800"}, {"0x2235", "A40"},
     {"0x2236", "A10"},       {"0x2237", "A10G"},      {"0x2330", "H100"}, {"0x2331", "H100-PCIE"},
     {"0x2335", "H200"},      {"0x2324", "H800"},      {"0x27b8", "L4"},   {"0x26b9", "L40S"},
     {"0x2901", "B200"},      {"0x2941", "GB200"}}};

// By generation, from 1: GT/s x 10, and per lane the rate that copies reach and the line rate.
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
  auto is_letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); };
  auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (auto [name, compute_capability] : kNames)
    for (std::size_t at = text.find(name); at != std::string_view::npos;
         at = text.find(name, at + 1)) {
      std::size_t end = at + name.size();
      bool begins = at == 0 || !(is_letter(text[at - 1]) || is_digit(text[at - 1]));
      if (begins && (end == text.size() || !is_digit(text[end]))) return compute_capability;
    }
  return std::nullopt;
}

std::string_view gpu_of_device(std::string_view device) {
  for (auto [number, name] : kDevices)
    if (device == number) return name;
  return {};
}

UsersGpu users_gpu(std::string_view name) {
  UsersGpu out{std::string(name), 0, 0};
  for (char& c : out.name) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  std::string words = out.name;
  std::replace(words.begin(), words.end(), '-', ' ');
  std::optional<std::int32_t> known = gpu_named(words);
  if (!known) known = gpu_named(name);
  if (!known && words.starts_with("SM")) {
    int sm = 0;
    auto [end, error] = std::from_chars(words.data() + 2, words.data() + words.size(), sm);
    if (error == std::errc() && end == words.data() + words.size() && sm >= 50 && sm < 1000)
      known = sm;
  }
  if (!known)
    throw InputError(
        "topology: gpu: expected the name of a GPU such as h100, a100-pcie or sm90, "
        "found " +
        quoted(name));
  out.compute_capability = *known;
  const GpuClass& gpu = gpu_class(*known);
  bool alone = words.find("PCIE") != std::string::npos || words.find("NVL") != std::string::npos ||
               words.find("A30") != std::string::npos;
  if (gpu.nvlinks >= 12 && !alone) out.switch_bytes_per_s = gpu.nvlink_bytes_per_s * gpu.nvlinks;
  return out;
}

std::string assumed_switches(const UsersGpu& gpu) {
  const GpuClass& known = gpu_class(gpu.compute_capability);
  return "NVLink: " + std::to_string(known.nvlinks) + " links x " +
         rate_text(known.nvlink_bytes_per_s) + " from each GPU to switches, as usual with " +
         gpu.name;
}

bool mostly_linked(std::int32_t compute_capability) {
  const GpuClass& gpu = gpu_class(compute_capability);
  return gpu.nvlinks >= 6;
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

// Network: the step of NCCL 2.30's LL protocol. PCIe: measured on 8 x RTX PRO 6000
// (voipmonitor/rtx6kpro): 0.71-0.74 us within one chip's switches, 1.27-1.36 us across. NVLink: as
// within a PCIe switch.
std::int64_t usual_latency_ps(PathClass path_class) {
  if (path_class == PathClass::NET) return 2'700'000;
  return path_class == PathClass::SYS ? 1'300'000 : 700'000;
}

}  // namespace reshard::sim
