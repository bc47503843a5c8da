// SPDX-License-Identifier: BSD-3-Clause
#include "sim/page/rank_names.h"

#include <fmt/format.h>

#include "core/layout/mesh.h"

namespace reshard::sim {

namespace {

constexpr std::size_t kLongest = 11;

}  // namespace

std::string ranks_name(const std::vector<Rank>& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", to_int(ranks.front()));
  std::string all = ranks_text(ranks);
  if (all.size() > kLongest) all = fmt::format("{}, {}, ..", to_int(ranks[0]), to_int(ranks[1]));
  return fmt::format("ranks {} ({})", all, ranks.size());
}

}  // namespace reshard::sim
