// SPDX-License-Identifier: BSD-3-Clause
// The entry bound: what a rank needs and its node does not have comes straight from another node,
// or by another rank of its own.
//
// Let F be the bytes that a rank must receive of elements of which some addend is held in no rank
// of its node. Until time t at most c (t - L) of them come straight, by routes between nodes into
// the rank, c their capacity and L their latency. The others enter the node at another rank first,
// and then cross at least one route inside it, of latency l or more: until t no more of them than
// entered the node's other ranks until t - l, and than routes inside the node let through since
// L + l, so at most m (t - L - l), m the lesser of the two capacities. Hence the least t with
//
//   c (t - L) + m max(0, t - L - l) >= F
//
// is a bound: of long transfers no more than the cuts say, of short ones the sum of two latencies.
// Switches that reduce or multicast change nothing: something of every element must enter the rank.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/integers.h"
#include "core/bounds/capacity.h"

namespace reshard {

// The ways into a rank that F may take.
struct EntryWays {
  Passage straight;            // from other nodes
  Int128 relayed_bytes_per_s;  // the lesser of the two capacities; 0: it is alone in its node
  std::int64_t inside_ps;      // the least latency inside the node
};

// 0 without bytes; rounded up and cut to int64.
std::int64_t entry_bound_ps(Int128 bytes, const EntryWays& ways);

// Of the ranks of a job, ascending; `far` is F of each in elements of `width` bytes.
std::int64_t entry_bound_ps(const std::vector<Int128>& far, std::int64_t width,
                            const Topology& topology, const std::vector<Rank>& ranks);

}  // namespace reshard
