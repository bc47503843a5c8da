// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/least_volume.h"

#include <algorithm>
#include <limits>

#include "core/bounds/atoms.h"
#include "core/bounds/level.h"

namespace reshard::test {

std::int64_t least_volume_bytes(const Request& request) {
  LevelView ranks;
  for (std::size_t i = 0; i < request.ranks().size(); ++i)
    ranks.set_of.push_back(static_cast<std::int32_t>(i));
  ranks.sets = static_cast<std::int32_t>(request.ranks().size());
  MemberLists holders = holders_of(request, request.ranks()),
              needers = needers_of(request, request.ranks());
  LevelCount count(holders, needers, request.fold().fold_count, ranks);
  std::vector<std::int64_t> zero = zero_coordinates(request);
  Atoms(request).for_each([&](std::int64_t source, std::int64_t destination,
                              std::int64_t elements) {
    for (std::int64_t kept = 0; kept < holders.kept; ++kept)
      count.add(
          to_index(source * holders.kept + kept),
          to_index((destination * holders.kept + kept) * needers.zeros + zero[to_index(source)]),
          elements);
  });
  Int128 bytes = count.receipts() * size_bytes(request.dtype());
  return static_cast<std::int64_t>(
      std::min<Int128>(bytes, std::numeric_limits<std::int64_t>::max()));
}

}  // namespace reshard::test
