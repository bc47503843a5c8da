// SPDX-License-Identifier: BSD-3-Clause
// Files that describe a machine: our own topology text, and the output of NVIDIA's tools. Each
// format has one source file here, a declaration below and a row in formats.cpp. The format of a
// text is detected from its content.
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
  // What is implausible in the file, one sentence each, with its line: "dump.xml:7: ...".
  std::vector<std::string> doubts = {};
};

struct TopologyFormat {
  std::string_view what;  // in messages and help
  bool (*recognise)(std::string_view text);
  // Throws InputError "FILE:LINE: expected ..., found ...".
  ReadTopology (*read)(std::string_view text, const std::string& file,
                       const std::optional<UsersGpu>& gpu);
};

// What a file may be, for messages and help: "a topology (..), NCCL's XML (..), .. or ..".
std::string topology_formats();

// Reads a text in whatever format it has. `gpu` names the GPUs of a file that does not; it also
// supplies the NVLinks that such files leave out.
ReadTopology read_topology(std::string_view text, const std::string& file,
                           const std::optional<UsersGpu>& gpu = std::nullopt);

// NCCL's XML, as written by NCCL_TOPO_DUMP_FILE: sim/machine_files/nccl_xml.cpp.
bool is_nccl_xml(std::string_view text);
ReadTopology read_nccl_xml(std::string_view text, const std::string& file,
                           const std::optional<UsersGpu>& gpu);

// The matrix of `nvidia-smi topo -m`: sim/machine_files/smi_matrix.cpp.
bool is_smi_matrix(std::string_view text);
ReadTopology read_smi_matrix(std::string_view text, const std::string& file,
                             const std::optional<UsersGpu>& gpu);

// The matrices of p2pBandwidthLatencyTest, as a machine: sim/machine_files/p2p_machine.cpp.
bool is_p2p_matrices(std::string_view text);
ReadTopology read_p2p_machine(std::string_view text, const std::string& file,
                              const std::optional<UsersGpu>& gpu);

}  // namespace reshard::sim
