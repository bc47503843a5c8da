// SPDX-License-Identifier: BSD-3-Clause
// What of a timeline fits a picture: lanes of ranks, in each slices that can be told apart.
//
// A thousand ranks that run one program mostly do the same at the same times: they are one lane,
// and nothing is lost. Where lanes are still too many, some of them stand for all, spread evenly,
// and with them the one that ends last, which is what the time is. Slices too narrow to be seen
// are put together with their neighbours, ever wider until they are few enough.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "core/plan/executor.h"

namespace reshard::sim {

// What differs in kind and was put together is of this one.
inline constexpr std::string_view kSeveralKinds = "several";

struct LaneSlice {
  std::int64_t start_ps, end_ps;
  std::string_view kind;
  OpId op;  // of the first part
  std::int32_t step;
  std::int32_t parts;  // that were put together
};

struct Lane {
  std::vector<Rank> ranks;  // ascending
  // Slices of a row do not overlap, but in the last one where there would be more than kMostRows.
  static constexpr std::size_t kMostRows = 6;
  std::vector<std::vector<LaneSlice>> rows;
};

struct Lanes {
  std::vector<Lane> lanes;       // by first rank
  std::size_t ranks, all_lanes;  // in the timeline
  bool crowded = false;          // some rank does more than Lane::kMostRows things at a time
  std::int64_t together_ps = 0;  // what is shorter was put together with its neighbours
};

struct LaneLimits {
  std::size_t ranks_apart;  // so few ranks have a lane each
  std::size_t lanes, slices;
};

// `kind_of` says what a span is coloured by. Spans that take no time are left out.
Lanes lanes_of(const Timeline& timeline, const LaneLimits& limits,
               const std::function<std::string_view(const Span&)>& kind_of);

}  // namespace reshard::sim
