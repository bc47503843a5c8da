// SPDX-License-Identifier: BSD-3-Clause
// Machines by name: the topologies of traces/topologies, compiled in, and the user's own files.
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

// By name, ascending.
std::vector<PresetInfo> presets();

// What a spec names, and the count it gives. `spec`: "dgx-h100", "dgx-h100:4", "path/to/file.topo",
// "path/to/file.topo:4"; each with ",nics=2,oversubscription=4" behind it (network_variant.h). A
// word that is a preset's name is that preset; what holds a
// '/' or ends in ".topo", and any other file that exists, is a path, to a file of any format of
// formats.h. Throws InputError: an unknown name (lists the names), a file that cannot be read or is
// wrong.
struct NamedTopology {
  TopologyDescription description;
  std::optional<std::int64_t> count;
  std::vector<std::string> doubts = {};  // of its file, as ReadTopology
};
NamedTopology find_description(std::string_view spec);

// The file that a spec names; empty for a preset.
std::string file_of(std::string_view spec);

// The topology of a spec, its count applied. Throws InputError.
Topology find_topology(std::string_view spec);

// dgx-h100:n with the least n that holds `devices_needed` (at least 1) devices. Throws InputError
// above 2^20.
Topology default_topology(std::int64_t devices_needed);

// Throws InputError where `highest_rank` has no device (rank r runs on device r).
void require_devices(const Topology& topology, std::int64_t highest_rank);

// The files of traces/topologies, compiled in by cmake/embed.cmake; by name.
std::span<const EmbeddedText> embedded_topologies();

// A whole text from outside, read without trust. Throws InputError "FILE: ..." for what is missing,
// a directory or unreadable, for a line above 64 MiB, and for more than `limit_bytes` in all; reads
// no further than that.
std::string read_text(std::istream& in, const std::string& file, std::size_t limit_bytes);
std::string read_text_file(const std::string& path, std::size_t limit_bytes);

}  // namespace reshard::sim
