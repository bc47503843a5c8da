// SPDX-License-Identifier: BSD-3-Clause
// Files that say what a machine is: our own topology text, and what NVIDIA's tools write. A format
// is one file here, its line below and its row in formats.cpp; which one a text has is seen from
// its content.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/topology/topology_text.h"
#include "sim/machine_files/known_parts.h"

namespace reshard::sim {

struct ReadTopology {
  TopologyDescription description;
  // What the file says that cannot be so, a sentence each, with its line: "dump.xml:7: ...".
  std::vector<std::string> doubts = {};
};

struct TopologyFormat {
  std::string_view name, purpose;
  bool (*recognise)(std::string_view text);
  // Throws InputError "FILE:LINE: expected ..., found ...".
  ReadTopology (*read)(std::string_view text, const std::string& file,
                       const std::optional<UsersGpu>& gpu);
};

// By the format that the text has. `gpu`: as the user names the GPUs of a file that does not; with
// it comes the NVLink that such files leave out.
ReadTopology read_topology(std::string_view text, const std::string& file,
                           const std::optional<UsersGpu>& gpu = std::nullopt);

// NCCL's XML, as NCCL_TOPO_DUMP_FILE writes it: sim/machine_files/nccl_xml.cpp.
bool is_nccl_xml(std::string_view text);
ReadTopology read_nccl_xml(std::string_view text, const std::string& file,
                           const std::optional<UsersGpu>& gpu);

// The matrix of `nvidia-smi topo -m`: sim/machine_files/smi_matrix.cpp.
bool is_smi_matrix(std::string_view text);
ReadTopology read_smi_matrix(std::string_view text, const std::string& file,
                             const std::optional<UsersGpu>& gpu);

// Matrices of p2pBandwidthLatencyTest as a machine: sim/machine_files/p2p_machine.cpp.
bool is_p2p_matrices(std::string_view text);
ReadTopology read_p2p_machine(std::string_view text, const std::string& file,
                              const std::optional<UsersGpu>& gpu);

}  // namespace reshard::sim
