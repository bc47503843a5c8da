// SPDX-License-Identifier: BSD-3-Clause
#include "sim/machine_files/formats.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/file_kinds.h"

namespace reshard::sim {
namespace {

// Skips a byte order mark, blank lines and comments.
bool is_topology_text(std::string_view text) {
  text = after_byte_order_mark(text);
  while (!text.empty()) {
    std::string_view line = take_line(text);
    std::size_t first = line.find_first_not_of(" \t\r");
    if (first != std::string_view::npos && line[first] != '#')
      return line.substr(first).starts_with("reshard-topology");
  }
  return false;
}

ReadTopology read_topology_text(std::string_view text, const std::string& file,
                                const std::optional<UsersGpu>& gpu) {
  if (gpu)
    throw InputError(fmt::format(
        "topology: gpu={}: expected a format that does not name its GPUs, found {}, which can",
        gpu->name, file));
  return {parse_topology(text, file)};
}

constexpr TopologyFormat kFormats[] = {
    {"a topology ('reshard-topology 1' as the first line)", is_topology_text, read_topology_text},
    {"NCCL's XML (NCCL_TOPO_DUMP_FILE)", is_nccl_xml, read_nccl_xml},
    {"p2pBandwidthLatencyTest output", is_p2p_matrices, read_p2p_machine},
    {"nvidia-smi topo -m output", is_smi_matrix, read_smi_matrix},
};

}  // namespace

std::string topology_formats() {
  std::string out;
  for (const TopologyFormat& row : kFormats) {
    bool last = &row == std::end(kFormats) - 1;
    out += fmt::format("{}{}", out.empty() ? "" : last ? " or " : ", ", row.what);
  }
  return out;
}

ReadTopology read_topology(std::string_view text, const std::string& file,
                           const std::optional<UsersGpu>& gpu) {
  const auto* format = std::find_if(std::begin(kFormats), std::end(kFormats),
                                    [&](const TopologyFormat& row) { return row.recognise(text); });
  if (format == std::end(kFormats))
    throw InputError(
        fmt::format("{}:1: expected {}, found {}", file, topology_formats(), file_look(text)));
  ReadTopology out = format->read(text, file, gpu);
  // Files of NVIDIA's tools state no transport; such machines use NCCL.
  if (format != kFormats) out.description.machine.transport = TransportKind::Nccl;
  return out;
}

}  // namespace reshard::sim
