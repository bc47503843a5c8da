// SPDX-License-Identifier: BSD-3-Clause
// A node as a file of NVIDIA's tools says it: GPUs, NVLinks, bridges of PCIe, sockets, NICs. From
// these parts `describe` makes routes; formats need not know how.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/topology/topology_text.h"

namespace reshard::sim {

struct NodeParts {
  // What a GPU or NIC hangs from: a bridge, by its index, or (-1) the socket itself.
  struct AttachPoint {
    std::int32_t bridge = -1, socket = 0;
  };
  struct Bridge {
    AttachPoint above;  // a bridge with a lower index
    std::int64_t bytes_per_s;
  };
  struct Gpu {
    AttachPoint place;
    std::int64_t pcie_bytes_per_s;
    std::int64_t switch_bytes_per_s = 0;  // to NVLink switches; 0: none
  };
  struct NvLink {
    std::int32_t a, b;  // GPUs, a < b
    std::int64_t bytes_per_s;
  };
  struct Nic {
    AttachPoint place;
    std::int64_t bytes_per_s;
    std::string name = {};  // "mlx5_0", where it is said
  };

  std::string name;  // of the machine, as a topology file spells it
  Machine machine;
  std::vector<Bridge> bridges;
  std::vector<Gpu> gpus;        // by number; at least one
  std::vector<NvLink> nvlinks;  // a pair at most once
  std::vector<Nic> nics;
  std::int64_t socket_bytes_per_s = 0;  // between two sockets, both directions together
  // What was taken for granted so far; `describe` adds what it takes.
  std::vector<std::string> assumed;
};

// Rates are of one direction and above 0. A resource that nothing can fill is left out, and so is
// what no route crosses: PCIe, where NVLink joins all. Nodes join by their NICs at full rate.
// Throws InputError "FILE: ..." where there are more routes than a topology may have.
TopologyDescription describe(const NodeParts& parts, const std::string& file);

// Throws InputError "FILE: ..." for what a topology file cannot hold.
void require_sayable(const TopologyDescription& description, const std::string& file);

// Says that latencies were taken for granted, class by class.
void assume_latencies(TopologyDescription& description);

// Removes ports and shared resources that no route crosses.
void drop_uncrossed(TopologyDescription& description);

// A name for a machine from the path of its file: "dumps/My node.xml" -> "My-node".
std::string machine_name(const std::string& file);

}  // namespace reshard::sim
