// SPDX-License-Identifier: BSD-3-Clause
// Machines by name: the topologies of traces/topologies, which are compiled in, and the user's
// files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/embedded_text.h"
#include "core/topology/topology.h"
#include "core/topology/topology_text.h"

namespace reshard::sim {

struct PresetInfo {
  std::string name;     // "dgx-h100"
  std::string summary;  // the first comment of its file, without '#'
  std::string text;     // the file
};

// Sorted by name.
std::vector<PresetInfo> presets();

// The description that a spec names, and the count that it gives. `spec` is "dgx-h100",
// "dgx-h100:4", "path/to/file.topo" or "path/to/file.topo:4", each optionally followed by
// ",nics=2,oversubscription=4" (network_variant.h). The name of a preset means that preset; a word
// that contains a '/' or ends in ".topo", or the name of any other existing file, is a path to a
// file of any format of formats.h. Throws InputError for an unknown name (and lists the names), and
// for a file that is unreadable or wrong.
struct NamedTopology {
  TopologyDescription description;
  std::optional<std::int64_t> count;
  std::vector<std::string> doubts = {};  // of its file, as in ReadTopology
};
NamedTopology find_description(std::string_view spec);

// The file that a spec names; empty for a preset.
std::string file_of(std::string_view spec);

// The topology of a spec, with its count applied. Throws InputError.
Topology find_topology(std::string_view spec);

// dgx-h100:n with the least n that holds `devices_needed` (at least 1) devices. Throws InputError
// above 2^20.
Topology default_topology(std::int64_t devices_needed);

// Throws InputError if `highest_rank` has no device (rank r runs on device r).
void require_devices(const Topology& topology, std::int64_t highest_rank);

// The files of traces/topologies by name, compiled in by embed_texts (cmake/parts.cmake).
std::span<const EmbeddedText> embedded_topologies();

// Reads a whole untrusted text. Throws InputError "FILE: ..." if the file is missing, a directory
// or unreadable, for a line above 64 MiB, and for more than `limit_bytes` in total; reads no
// further than that.
std::string read_text(std::istream& in, const std::string& file, std::size_t limit_bytes);
std::string read_text_file(const std::string& path, std::size_t limit_bytes);

}  // namespace reshard::sim
