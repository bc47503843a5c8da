// SPDX-License-Identifier: BSD-3-Clause
// What p2pBandwidthLatencyTest of the CUDA samples prints: who can reach whom, and what copies
// between any two GPUs reach, with peer-to-peer access and without, in one direction and in both at
// once (the sum of the two), in GB/s; and latencies in us.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"

namespace reshard::sim {

// Square; bytes/s, ps, or 0 and 1.
struct P2pMatrix {
  std::int32_t size = 0;
  std::vector<std::int64_t> cells;  // row by row: from row to column
  std::int64_t line = 0;            // of its heading
  std::int64_t at(std::int32_t from, std::int32_t to) const {
    return cells[to_index(from) * to_index(size) + to_index(to)];
  }
};

struct P2pMatrices {
  std::int32_t gpus = 0;             // 2 .. 256
  std::vector<std::string> names;    // "NVIDIA GeForce RTX 3090", by GPU; may be empty
  std::optional<P2pMatrix> reaches;  // 1: peer access
  // One direction and both; without peer access where that is off.
  std::optional<P2pMatrix> one_way, one_way_off, both_ways, both_ways_off;
  std::optional<P2pMatrix> latency, latency_off;  // as GPUs measure it

  // Whether copies go straight from one to the other; where nothing is said they do.
  bool direct(std::int32_t a, std::int32_t b) const;
  // Means of both directions: of one copy, of one in each direction together; where only one of the
  // two was measured nothing for the other.
  std::optional<std::int64_t> rate(std::int32_t a, std::int32_t b) const;
  std::optional<std::int64_t> rate_of_both(std::int32_t a, std::int32_t b) const;
  std::optional<std::int64_t> latency_ps(std::int32_t a, std::int32_t b) const;
};

bool is_p2p_matrices(std::string_view text);
// At least one matrix of bandwidths. Throws InputError "FILE:LINE: expected ..., found ...".
P2pMatrices parse_p2p_matrices(std::string_view text, const std::string& file);

}  // namespace reshard::sim
