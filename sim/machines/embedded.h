// SPDX-License-Identifier: BSD-3-Clause
// The files of traces/topologies, compiled in by cmake/embed.cmake.
#pragma once

#include <span>
#include <string_view>

namespace reshard::sim {

struct EmbeddedText {
  std::string_view name;  // file name without ".topo"
  std::string_view text;
};

// In the order in which CMakeLists.txt lists them.
std::span<const EmbeddedText> embedded_topologies();

}  // namespace reshard::sim
