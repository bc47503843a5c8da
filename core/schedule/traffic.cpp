// SPDX-License-Identifier: BSD-3-Clause
// Pairs are gathered step by step, then sorted and summed: a plan names few of the pairs that its
// ranks could form, except in an all_to_all of all.
#include "core/schedule/traffic.h"

#include <algorithm>
#include <tuple>

#include "core/base/errors.h"
#include "core/schedule/transfers.h"

namespace reshard {

std::vector<PairBytes> traffic_of(const Plan& plan) {
  std::vector<PairBytes> pairs;
  for (const Step& step : plan.steps)
    for_each_pair(plan, step, [&](Slot source, Slot destination, std::int64_t bytes) {
      if (static_cast<std::int64_t>(pairs.size()) == kMaxTrafficPairs)
        throw InputError("traffic: expected steps that connect at most 2^26 pairs, found more");
      if (bytes > 0) pairs.push_back({source, destination, bytes});
    });
  std::sort(pairs.begin(), pairs.end(), [](const PairBytes& a, const PairBytes& b) {
    return std::tie(a.source, a.destination) < std::tie(b.source, b.destination);
  });
  std::size_t kept = 0;
  for (const PairBytes& pair : pairs) {
    if (kept > 0 && pairs[kept - 1].source == pair.source &&
        pairs[kept - 1].destination == pair.destination)
      pairs[kept - 1].bytes += pair.bytes;
    else
      pairs[kept++] = pair;
  }
  pairs.resize(kept);
  return pairs;
}

AlltoallvMatrix alltoallv_matrix(const Plan& plan) {
  std::int64_t ranks = to_int(plan.ranks.back()) + std::int64_t{1};
  if (ranks > kMaxMatrixRanks)
    throw InputError("alltoallv matrix: expected ranks below " + std::to_string(kMaxMatrixRanks) +
                     ", found rank " + std::to_string(ranks - 1));
  std::vector<PairBytes> pairs = traffic_of(plan);
  AlltoallvMatrix out;
  std::vector<std::int64_t> received(static_cast<std::size_t>(ranks), 0);
  std::size_t next = 0;
  for (std::int64_t source = 0; source < ranks; ++source) {
    std::int64_t sent = 0;
    for (std::int64_t destination = 0; destination < ranks; ++destination) {
      auto rank_of = [&](Slot slot) { return to_int(plan.ranks[static_cast<std::size_t>(slot)]); };
      std::int64_t bytes = 0;
      if (next < pairs.size() && rank_of(pairs[next].source) == source &&
          rank_of(pairs[next].destination) == destination)
        bytes = pairs[next++].bytes;
      sent += bytes;
      received[static_cast<std::size_t>(destination)] += bytes;
      out.text += std::to_string(bytes) + (destination + 1 < ranks ? ' ' : '\n');
    }
    out.size_bytes = std::max(out.size_bytes, sent);
  }
  out.size_bytes = std::max(out.size_bytes, *std::max_element(received.begin(), received.end()));
  return out;
}

}  // namespace reshard
