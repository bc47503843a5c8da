// SPDX-License-Identifier: BSD-3-Clause
// Finds what is implausible in a well-formed machine description.
#pragma once

#include <string>
#include <vector>

#include "core/topology/topology_text.h"

namespace reshard::sim {

// One sentence per finding, with the name of the part or, for routes read from a file, the line:
// "FILE: port nic: ...", "FILE:12: ...". Empty if nothing is implausible. `file` is the file that
// the description was read from, or the name of the description.
std::vector<std::string> doubts_about(const TopologyDescription& description,
                                      const std::string& file);

}  // namespace reshard::sim
