// SPDX-License-Identifier: BSD-3-Clause
// NCCL's classes of paths between two devices, best first (its src/graph/topo.h). `nvidia-smi topo
// -m` prints the same words.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace reshard {

enum class PathClass : std::uint8_t {
  NVL,  // NVLink, directly or through a switch
  NVB,  // NVLink through another GPU
  C2C,  // a link between chips
  PIX,  // one PCIe bridge
  PXB,  // several PCIe bridges, no host bridge
  P2C,  // a link between chips, then PCIe
  PXN,  // through another GPU's NIC
  PHB,  // a PCIe host bridge
  SYS,  // between sockets
  NET,  // a network
};

// In the order of PathClass.
inline constexpr std::array<std::string_view, 10> kPathClasses{"NVL", "NVB", "C2C", "PIX", "PXB",
                                                               "P2C", "PXN", "PHB", "SYS", "NET"};
std::string_view text(PathClass path_class);
std::optional<PathClass> find_path_class(std::string_view word);

}  // namespace reshard
