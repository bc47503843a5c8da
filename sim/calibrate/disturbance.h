// SPDX-License-Identifier: BSD-3-Clause
// Compute and communication of one GPU, each alone and beside each other: a pair of runs, from
// which follows how much they slow each other (sim/network/interference.h).
//
// As JSON, times in ps:
//
//     {"reshard_overlap": 1, "transport": "nccl",
//      "compute_alone_ps": 396800000000, "communication_alone_ps": 266900000000,
//      "compute_ps": 584600000000, "communication_ps": 277800000000}
//
// Both begin together. With the shares s of compute's rate and r of communication's while both run,
// and communication the first to end,
//
//     communication = communication_alone / r
//     compute_alone = s * communication + (compute - communication)
//
// and the other way round where compute ends first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/topology/topology_text.h"
#include "sim/calibrate/fit.h"

namespace reshard::sim {

struct MeasuredOverlap {
  TransportKind transport;  // Nccl or CopyEngine
  std::int64_t compute_alone_ps, communication_alone_ps, compute_ps, communication_ps;  // above 0
};

bool is_overlap(std::string_view text);
// Throws InputError "FILE: FIELD: expected ..., found ...".
MeasuredOverlap parse_overlap(std::string_view text, const std::string& file);

// Sets the two figures of the transport, and says them. Where one ran no slower beside the other
// its share is 1. Throws InputError for times that no share explains.
std::vector<Fitted> fit_overlap(TopologyDescription& machine, const MeasuredOverlap& measured,
                                const std::string& file);

}  // namespace reshard::sim
