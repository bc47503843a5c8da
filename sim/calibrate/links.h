// SPDX-License-Identifier: BSD-3-Clause
// Puts the rates and latencies of copies between two GPUs, as measured by p2pBandwidthLatencyTest,
// into a machine's links. Route lines of one class and of equal rates form a group, which gets the
// mean over its pairs.
//
// Over NVLink the mean becomes the cap of a flow: the links keep their line rates, from which
// NCCL's rates are derived. Any other link gets the highest mean of a group that crosses it: of the
// one-way rates, or also of the two-way rates if both directions cross the link. A group with
// routes that would then still be too fast is capped. Latencies are the means.
#pragma once

#include <cstdint>
#include <vector>

#include "core/topology/topology_text.h"
#include "sim/calibrate/fit.h"
#include "sim/machine_files/p2p_matrices.h"

namespace reshard::sim {

// Pairs of GPUs with routes of one class that had equal rates.
struct MeasuredPairs {
  PathClass path_class;
  std::int64_t pairs = 0;
  std::int64_t measured_bytes_per_s = 0;  // mean over the pairs, one copy at a time; above 0
  std::int64_t before_bytes_per_s = 0, after_bytes_per_s = 0;
};

struct LinkFit {
  std::vector<Fitted> fitted;  // only what changed
  std::vector<MeasuredPairs> pairs;
  TopologyDescription machine;
};

// GPU i of the matrices is device i of the first node. Throws InputError "FILE: ..." if there are
// more GPUs than a node has, or no matrix of one-way rates.
LinkFit fit_links(const TopologyDescription& base, const P2pMatrices& measured,
                  const std::string& file);

}  // namespace reshard::sim
