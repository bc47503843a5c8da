// SPDX-License-Identifier: BSD-3-Clause
// Reduces a timeline to what fits a picture: lanes of ranks, with slices that can be distinguished.
//
// Among a thousand ranks that run one program, most do the same at the same times: they share one
// lane, without loss. If there are still too many lanes, an evenly spread selection is shown,
// always with the lane that ends last, which decides the time. Slices that are too narrow to be
// seen are merged with their neighbours, with a width that grows until they are few enough.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "core/plan/executor.h"

namespace reshard::sim {

// The kind of a slice that was merged from different kinds.
inline constexpr std::string_view kSeveralKinds = "several";

struct LaneSlice {
  std::int64_t start_ps, end_ps;
  std::string_view kind;
  OpId op;  // of the first part
  std::int32_t step;
  std::int32_t parts;  // how many were merged; 1: none
};

struct Lane {
  std::vector<Rank> ranks;  // ascending
  // Slices of a row do not overlap, except in the last row if kMostRows are not enough.
  static constexpr std::size_t kMostRows = 6;
  std::vector<std::vector<LaneSlice>> rows;
};

struct Lanes {
  std::vector<Lane> lanes;       // by first rank
  std::size_t ranks, all_lanes;  // in the timeline
  bool crowded = false;          // some rank does more than Lane::kMostRows things at one time
  std::int64_t together_ps = 0;  // neighbours that together are shorter were merged; 0: none
};

struct LaneLimits {
  std::size_t ranks_apart;  // up to this many ranks have a lane each
  std::size_t lanes, slices;
};

// `kind_of` returns the kind by which a span is coloured. Spans that take no time are left out.
Lanes lanes_of(const Timeline& timeline, const LaneLimits& limits,
               const std::function<std::string_view(const Span&)>& kind_of);

}  // namespace reshard::sim
