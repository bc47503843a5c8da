// SPDX-License-Identifier: BSD-3-Clause
#include "core/traffic/accounting.h"

#include <algorithm>
#include <tuple>

#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/schedule/held_memory.h"
#include "core/traffic/transfers.h"

namespace reshard {

PlanBytes count_bytes(const Plan& plan) {
  std::size_t slots = plan.slot_count();
  PlanBytes out;
  out.received_per_step.assign(plan.steps.size(), 0);
  out.received_per_slot.assign(slots, 0);
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    for_each_receipt(plan, plan.steps[s], [&](Slot slot, std::int64_t bytes) {
      add_bytes(out.received_per_step[s], bytes);
      add_bytes(out.received_per_slot[to_index(slot)], bytes);
    });
  for (std::int64_t received : out.received_per_slot) {
    out.received_max = std::max(out.received_max, received);
    add_bytes(out.received_total, received);
  }

  out.peak_per_slot = held_buffers(plan);
  for (std::int64_t peak : out.peak_per_slot) out.peak_max = std::max(out.peak_max, peak);
  return out;
}

// Pairs are collected step by step, then sorted and summed: a plan names few of the pairs that its
// ranks could form, unless it has an all_to_all of all of them.

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
      add_bytes(pairs[kept - 1].bytes, pair.bytes);
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
  std::vector<std::int64_t> received(to_index(ranks), 0);
  std::size_t next = 0;
  for (std::int64_t source = 0; source < ranks; ++source) {
    std::int64_t sent = 0;
    for (std::int64_t destination = 0; destination < ranks; ++destination) {
      auto rank_of = [&](Slot slot) { return to_int(plan.ranks[slot]); };
      std::int64_t bytes = 0;
      if (next < pairs.size() && rank_of(pairs[next].source) == source &&
          rank_of(pairs[next].destination) == destination)
        bytes = pairs[next++].bytes;
      add_bytes(sent, bytes);
      add_bytes(received[to_index(destination)], bytes);
      out.text += std::to_string(bytes) + (destination + 1 < ranks ? ' ' : '\n');
    }
    out.size_bytes = std::max(out.size_bytes, sent);
  }
  out.size_bytes = std::max(out.size_bytes, *std::max_element(received.begin(), received.end()));
  return out;
}

}  // namespace reshard
