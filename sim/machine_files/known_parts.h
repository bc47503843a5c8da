// SPDX-License-Identifier: BSD-3-Clause
// Known properties of machine parts, for what a file does not state: classes of GPUs, PCIe links,
// links between sockets, latencies.
//
// Sources: data sheets of V100, A100, H100, B200 and GeForce/RTX boards for NVLink (line rates per
// link and direction); NCCL 2.30.7, src/graph/topo.h, for the rates of PCIe and sockets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/topology/machine.h"
#include "core/topology/path_class.h"

namespace reshard::sim {

struct GpuClass {
  std::int32_t compute_capability;  // x 10; applies up to the next class
  std::int64_t nvlink_bytes_per_s;  // of one link, one direction; 0: has none
  std::int32_t nvlinks;             // maximum per GPU
  int pcie_generation;              // 3 .. 6
  std::int64_t nic_bytes_per_s;     // line rate of the NIC that usually accompanies it
};
// For any compute capability; below that of the first class, the first.
const GpuClass& gpu_class(std::int32_t compute_capability);

// "NVIDIA H100 80GB HBM3" -> 90; nothing if the text contains no known name.
std::optional<std::int32_t> gpu_named(std::string_view text);
// By the device number of its PCI function, "0x2330" -> "H100"; empty if unknown.
std::string_view gpu_of_device(std::string_view device);

// A GPU that the user names because a file does not: "h100", "a100-pcie", "sm90".
struct UsersGpu {
  std::string name;
  std::int32_t compute_capability;
  // Rate to NVLink switches, as on the boards of machines with eight such GPUs; 0: none.
  std::int64_t switch_bytes_per_s;
};
// Throws InputError for an unknown name.
UsersGpu users_gpu(std::string_view name);
// "NVLink: 18 links x 25.000 GB/s from each GPU to switches, as usual with H100".
std::string assumed_switches(const UsersGpu& gpu);
// Whether machines with several such GPUs usually have NVLink, so that its absence is worth
// reporting.
bool mostly_linked(std::int32_t compute_capability);

// The rate that copies reach over `lanes` of a PCIe generation (1 .. 6), one direction; and its
// line rate, which no copy exceeds.
std::int64_t pcie_bytes_per_s(int generation, std::int64_t lanes);
std::int64_t pcie_line_bytes_per_s(int generation, std::int64_t lanes);
// "16.0 GT/s PCIe", "8 GT/s" -> 4, 3; nothing for other texts.
std::optional<int> pcie_generation(std::string_view link_speed);
// As bridges report it: "16.0 GT/s PCIe".
std::string pcie_speed_text(int generation);

// Rate between two sockets, one direction, as assumed by NCCL. `family` and `model` are those of
// x86.
std::int64_t socket_bytes_per_s(Cpu cpu, std::string_view arch, std::int32_t family,
                                std::int32_t model);

// Latency before the first byte moves, without any software overhead.
std::int64_t usual_latency_ps(PathClass path_class);

}  // namespace reshard::sim
