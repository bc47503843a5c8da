// SPDX-License-Identifier: BSD-3-Clause
// A node as the files of NVIDIA's tools describe it: GPUs, NVLinks, PCIe bridges, sockets, NICs.
// `describe` derives routes from these parts, so that the readers of formats need not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/topology/topology_text.h"

namespace reshard::sim {

struct NodeParts {
  // Where a GPU, NIC or bridge is attached: to a bridge, by its index, or (-1) to the socket
  // itself.
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
    std::string name = {};  // "mlx5_0"; may be empty
  };

  std::string name;  // of the machine, as spelled in a topology file
  Machine machine;
  std::vector<Bridge> bridges;
  std::vector<Gpu> gpus;        // by number; at least one
  std::vector<NvLink> nvlinks;  // each pair at most once
  std::vector<Nic> nics;
  std::int64_t socket_bytes_per_s = 0;  // between two sockets, both directions together
  // Assumptions made so far; `describe` adds its own.
  std::vector<std::string> assumed;
};

// Derives the routes. Rates are for one direction and above 0. Resources that cannot be filled and
// those that no route crosses are left out, such as PCIe where NVLink joins all GPUs. Nodes are
// joined by their NICs at full rate. Throws InputError "FILE: ..." for more routes than a topology
// may have.
TopologyDescription describe(const NodeParts& parts, const std::string& file);

// Throws InputError "FILE: ..." for a description that a topology file cannot express.
void require_sayable(const TopologyDescription& description, const std::string& file);

// Adds the assumed latency of each class to the description's assumptions.
void assume_latencies(TopologyDescription& description);

// Removes ports and shared resources that no route crosses.
void drop_uncrossed(TopologyDescription& description);

// A machine name derived from the path of its file: "dumps/My node.xml" -> "My-node".
std::string machine_name(const std::string& file);

}  // namespace reshard::sim
