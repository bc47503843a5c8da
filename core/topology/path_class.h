// SPDX-License-Identifier: BSD-3-Clause
// What lies between two devices, in the classes of NCCL, best first (its src/graph/topo.h);
// `nvidia-smi topo -m` prints the same words.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace reshard {

enum class PathClass : std::uint8_t {
  NVL,  // NVLink, through a switch too
  NVB,  // NVLink by way of another GPU
  C2C,  // a link between chips
  PIX,  // one PCIe bridge
  PXB,  // several PCIe bridges, no host bridge
  P2C,  // between chips, then PCIe
  PXN,  // by another GPU's NIC
  PHB,  // a PCIe host bridge
  SYS,  // between sockets
  NET,  // a network
};

// In their order.
inline constexpr std::array<std::string_view, 10> kPathClasses{"NVL", "NVB", "C2C", "PIX", "PXB",
                                                               "P2C", "PXN", "PHB", "SYS", "NET"};
std::string_view text(PathClass path_class);
std::optional<PathClass> find_path_class(std::string_view word);

}  // namespace reshard
