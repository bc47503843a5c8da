// SPDX-License-Identifier: BSD-3-Clause
// What copies between two GPUs reach, as p2pBandwidthLatencyTest measures it, put into a machine's
// links. Route lines of one class and of equal rates are taken together, and their pairs' mean
// counts.
//
// Over NVLink a mean becomes the cap of a flow: the links keep their line rates, from which NCCL's
// follow. Elsewhere a link gets what the fastest pair across it reaches, in one direction, or in
// both where both directions cross it; what then is still too fast is capped. Latencies are the
// means.
#pragma once

#include <cstdint>
#include <vector>

#include "core/topology/topology_text.h"
#include "sim/calibrate/fit.h"
#include "sim/machine_files/p2p_matrices.h"

namespace reshard::sim {

// Pairs of GPUs whose routes are of one class and had the same rates.
struct MeasuredPairs {
  PathClass path_class;
  std::int64_t pairs = 0;
  std::int64_t measured_bytes_per_s = 0;  // mean of one copy, above 0
  std::int64_t before_bytes_per_s = 0, after_bytes_per_s = 0;
};

struct LinkFit {
  std::vector<Fitted> fitted;  // what changed
  std::vector<MeasuredPairs> pairs;
  TopologyDescription machine;
};

// GPU i of the matrices is device i of the first node. Throws InputError "FILE: ..." for more GPUs
// than a node has, and for matrices without rates of one direction.
LinkFit fit_links(const TopologyDescription& base, const P2pMatrices& measured,
                  const std::string& file);

}  // namespace reshard::sim
