// SPDX-License-Identifier: BSD-3-Clause
// How much compute and communication on one GPU slow each other down
// (sim/network/interference.h), derived from measurements of each alone and of both together.
//
// The JSON input, times in ps:
//
//     {"reshard_overlap": 1, "transport": "nccl",
//      "compute_alone_ps": 396800000000, "communication_alone_ps": 266900000000,
//      "compute_ps": 584600000000, "communication_ps": 277800000000}
//
// Both start together. While both run, compute keeps the share s of its rate and communication the
// share r. If communication ends first,
//
//     communication = communication_alone / r
//     compute_alone = s * communication + (compute - communication)
//
// and the other way round if compute ends first.
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

// Sets the two figures of the transport in `machine` and returns them. A side that ran no slower
// together with the other keeps a share of 1. Throws InputError for times that no share explains.
std::vector<Fitted> fit_overlap(TopologyDescription& machine, const MeasuredOverlap& measured,
                                const std::string& file);

}  // namespace reshard::sim
