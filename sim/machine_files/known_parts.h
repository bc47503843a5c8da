// SPDX-License-Identifier: BSD-3-Clause
// What is known of parts of machines where a file does not say it: classes of GPUs, links of PCIe,
// what lies between sockets, how long a first byte takes.
//
// Sources: data sheets of V100, A100, H100, B200 and GeForce/RTX boards for NVLink (line rates per
// link and direction); NCCL 2.30.7,
// src/graph/topo.h, for what PCIe and sockets carry.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/topology/machine.h"
#include "core/topology/path_class.h"

namespace reshard::sim {

struct GpuClass {
  std::int32_t compute_capability;  // x 10; this and all up to the next class
  std::int64_t nvlink_bytes_per_s;  // of one link, one direction; 0: has none
  std::int32_t nvlinks;             // at most, of one GPU
  int pcie_generation;              // 3 .. 6
  std::int64_t nic_bytes_per_s;     // of the NIC that goes with it, line rate
};
// Of any compute capability; below the first the first.
const GpuClass& gpu_class(std::int32_t compute_capability);

// "NVIDIA H100 80GB HBM3" -> 90; nothing where no known name is in the text.
std::optional<std::int32_t> gpu_named(std::string_view text);
// By the device number of its PCI function, "0x2330" -> "H100"; empty where it is not known.
std::string_view gpu_of_device(std::string_view device);

// A GPU as a user names it where a file does not: "h100", "a100-pcie", "sm90".
struct UsersGpu {
  std::string name;
  std::int32_t compute_capability;
  // To NVLink switches, as on the boards that machines of eight such GPUs have; 0: none.
  std::int64_t switch_bytes_per_s;
};
// Throws InputError for a name that is not known.
UsersGpu users_gpu(std::string_view name);
// "NVLink: 18 links x 25 GB/s of each GPU to switches, as beside H100".
std::string assumed_switches(const UsersGpu& gpu);
// Whether machines of several such GPUs mostly have NVLink, so that none at all is to be said.
bool mostly_linked(std::int32_t compute_capability);

// What copies reach over `lanes` of PCIe of a generation (1 .. 6), one direction; and its line
// rate, which no copy passes.
std::int64_t pcie_bytes_per_s(int generation, std::int64_t lanes);
std::int64_t pcie_line_bytes_per_s(int generation, std::int64_t lanes);
// "16.0 GT/s PCIe", "8 GT/s" -> 4, 3; nothing for other texts.
std::optional<int> pcie_generation(std::string_view link_speed);
// As a bridge says it: "16.0 GT/s PCIe".
std::string pcie_speed_text(int generation);

// Between two sockets, one direction, as NCCL has it. `family`, `model`: of x86.
std::int64_t socket_bytes_per_s(Cpu cpu, std::string_view arch, std::int32_t family,
                                std::int32_t model);

// Before the first byte moves, where no software waits.
std::int64_t usual_latency_ps(PathClass path_class);

}  // namespace reshard::sim
