// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/least_volume.h"

#include <algorithm>
#include <limits>

#include "core/bounds/counted_items.h"
#include "core/bounds/level.h"

namespace reshard::test {

std::int64_t least_volume_bytes(const Request& request) {
  LevelView ranks;
  for (std::size_t i = 0; i < request.ranks().size(); ++i)
    ranks.set_of.push_back(static_cast<std::int32_t>(i));
  ranks.sets = static_cast<std::int32_t>(request.ranks().size());
  TensorKind kind(request, request.ranks());
  CountedItems items(kind);
  LevelCount count(items.holders(), items.needers(), request.fold().fold_count, ranks);
  items.for_each([&](std::size_t holders, std::size_t needers, std::int64_t elements) {
    count.add(holders, needers, elements);
  });
  Int128 bytes = count.receipts() * size_bytes(request.dtype());
  return static_cast<std::int64_t>(
      std::min<Int128>(bytes, std::numeric_limits<std::int64_t>::max()));
}

}  // namespace reshard::test
