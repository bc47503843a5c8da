// SPDX-License-Identifier: BSD-3-Clause
// What of a machine cannot be so, although it is well formed.
#pragma once

#include <string>
#include <vector>

#include "core/topology/topology_text.h"

namespace reshard::sim {

// A sentence each, with the name of what it is about and, of routes that were read from a file, its
// line: "FILE: port nic: ...", "FILE:12: ...". Empty: nothing is implausible. `file`: that the
// description was read from, or its name.
std::vector<std::string> doubts_about(const TopologyDescription& description,
                                      const std::string& file);

}  // namespace reshard::sim
