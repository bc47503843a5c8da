// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/ratios.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/base/units.h"

namespace reshard::sim {

namespace {

std::int64_t largest_shard_bytes(std::span<const Request> tensors) {
  std::int64_t largest = 0;
  for (auto side : {&Request::source, &Request::destination}) {
    std::vector<std::pair<Rank, std::int64_t>> held;  // (rank, bytes) of each shard
    for (const Request& request : tensors) {
      const Layout& layout = (request.*side)();
      for (std::int32_t position = 0; position < layout.mesh().size(); ++position)
        held.emplace_back(layout.mesh().rank_at(position),
                          elements_held(layout, position) * size_bytes(request.dtype()));
    }
    if (tensors.size() > 1) std::sort(held.begin(), held.end());
    std::int64_t of_rank = 0;
    for (std::size_t i = 0; i < held.size(); ++i) {
      bool same = i > 0 && held[i].first == held[i - 1].first;
      of_rank = held[i].second + (same ? of_rank : 0);
      largest = std::max(largest, of_rank);
    }
  }
  return largest;
}

std::optional<std::int64_t> rate_of(std::int64_t bytes, std::int64_t time_ps) {
  if (time_ps <= 0) return std::nullopt;
  Int128 rate = Int128{bytes} * kPsPerSecond / time_ps;
  return static_cast<std::int64_t>(
      std::min(rate, Int128{std::numeric_limits<std::int64_t>::max()}));
}

}  // namespace

std::int64_t elements_held(const Layout& layout, std::int32_t position) {
  std::int64_t out = element_count(layout.local_shape(position));
  for (const Box& box : layout.padding(position)) out -= box.volume();
  return out;
}

std::optional<std::int64_t> ratio_e4(std::int64_t time_ps, std::int64_t bound_ps) {
  if (bound_ps == 0) return std::nullopt;
  return static_cast<std::int64_t>((Int128{time_ps} * 20'000 + bound_ps) / (Int128{bound_ps} * 2));
}

Bandwidths bandwidths_of(std::span<const Request> tensors, std::int64_t bytes_received_max,
                         std::int64_t time_ps) {
  return {rate_of(largest_shard_bytes(tensors), time_ps), rate_of(bytes_received_max, time_ps)};
}

}  // namespace reshard::sim
