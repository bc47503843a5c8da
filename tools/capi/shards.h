// SPDX-License-Identifier: BSD-3-Clause
// What callers hand over where a plan runs on memory of theirs.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "core/plan/executor.h"
#include "tools/capi/guard.h"

namespace reshard::capi {

// An array of one per tensor; all have the first one's struct_size.
inline std::vector<CallerShards> shards_of(const reshard_shards* first, std::size_t tensors) {
  std::vector<CallerShards> out;
  for (std::size_t t = 0; t < tensors; ++t) {
    const auto* at = reinterpret_cast<const reshard_shards*>(
        reinterpret_cast<const char*>(&given(first, "shards")) + t * first->struct_size);
    reshard_shards mine = taken(at, "shards");
    require_zero(mine.reserved, "shards.reserved");
    if (mine.struct_size != first->struct_size)
      throw InputError("shards: expected one struct_size in all, found " +
                       std::to_string(mine.struct_size));
    for (auto [data, bytes, name] : {std::tuple{mine.source, mine.source_bytes, "source"},
                                     {mine.destination, mine.destination_bytes, "destination"}})
      if (bytes < 0 || (bytes > 0 && data == nullptr))
        throw InputError(std::string(name) + ": expected memory of " + std::to_string(bytes) +
                         " bytes, found NULL");
    out.push_back(
        {{static_cast<const std::byte*>(mine.source), static_cast<std::size_t>(mine.source_bytes)},
         {static_cast<std::byte*>(mine.destination),
          static_cast<std::size_t>(mine.destination_bytes)}});
  }
  return out;
}

}  // namespace reshard::capi
