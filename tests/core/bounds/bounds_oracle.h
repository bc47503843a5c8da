// SPDX-License-Identifier: BSD-3-Clause
// The definitions of the bounds, written in the simplest possible way.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/integers.h"
#include "core/layout/request.h"
#include "core/topology/topology.h"

namespace reshard::test {

// One element, or one kept addend of it.
struct Item {
  std::map<std::int64_t, std::set<Rank>> holders;  // per addend that is folded
  std::set<Rank> needers;
};
struct Items {
  std::vector<Item> items;
  std::int64_t width_bytes = 0;
};
Items items_of(const Request& request);

// The sets X by name: ranks, groups, and their complements; not the empty set, not the whole job.
std::map<std::string, std::set<Rank>> sets_of(const Topology& topology,
                                              const std::vector<Rank>& job);

Int128 in_bytes(const Items& items, const std::set<Rank>& members);
Int128 capacity_into(const Topology& topology, const std::vector<Rank>& job,
                     const std::set<Rank>& members);
// Of all routes from one set to another.
Int128 capacity_between(const Topology& topology, const std::vector<Rank>& job,
                        const std::vector<std::int32_t>& set_of);
Int128 receipts_bytes(const Items& items);
std::int64_t latency_ps(const Topology& topology, const std::vector<Rank>& job, const Items& items);

// Fewest transfers between sets of ranks after which every needer's set holds the whole fold; one
// item of at most 3 addends, at most 4 sets. A set holds what its ranks hold.
std::int64_t fewest_receipts(const Items& items, const std::vector<Rank>& job,
                             const std::vector<std::int32_t>& set_of);

// The least that any plan pays for the one item, where a rank's receipt from a rank of its own set
// costs `inside` and another `between`. At most four ranks.
std::int64_t cheapest_receipts(const Items& items, const std::vector<Rank>& job,
                               const std::vector<std::int32_t>& set_of, std::int64_t inside,
                               std::int64_t between);

}  // namespace reshard::test
