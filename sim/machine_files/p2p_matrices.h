// SPDX-License-Identifier: BSD-3-Clause
// The output of p2pBandwidthLatencyTest from the CUDA samples: which GPUs have peer access, the
// rates that copies between any two GPUs reach, with and without peer access, in one direction and
// in both at once (their sum), in GB/s; and latencies in us.
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
  std::vector<std::int64_t> cells;  // row by row, from the row's GPU to the column's
  std::int64_t line = 0;            // of its heading
  std::int64_t at(std::int32_t from, std::int32_t to) const {
    return cells[to_index(from) * to_index(size) + to_index(to)];
  }
};

struct P2pMatrices {
  std::int32_t gpus = 0;             // 2 .. 256
  std::vector<std::string> names;    // "NVIDIA GeForce RTX 3090", by GPU; may be empty
  std::optional<P2pMatrix> reaches;  // 1: peer access
  // One direction, and both together; `_off`: without peer access.
  std::optional<P2pMatrix> one_way, one_way_off, both_ways, both_ways_off;
  std::optional<P2pMatrix> latency, latency_off;  // as measured by the GPUs

  // Whether copies go directly from one GPU to the other: as the connectivity matrix states,
  // otherwise whether any matrix was measured with peer access.
  bool direct(std::int32_t a, std::int32_t b) const;
  // Means of the two directions: of one copy at a time, and of two copies, one in each direction,
  // added together. Nothing for the one that was not measured.
  std::optional<std::int64_t> rate(std::int32_t a, std::int32_t b) const;
  std::optional<std::int64_t> rate_of_both(std::int32_t a, std::int32_t b) const;
  std::optional<std::int64_t> latency_ps(std::int32_t a, std::int32_t b) const;
};

bool is_p2p_matrices(std::string_view text);
// The result has at least one matrix of bandwidths. Throws InputError
// "FILE:LINE: expected ..., found ...".
P2pMatrices parse_p2p_matrices(std::string_view text, const std::string& file);

}  // namespace reshard::sim
