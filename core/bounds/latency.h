// SPDX-License-Identifier: BSD-3-Clause
// The least time that a byte spends in transit.
//
// Into a rank: the least latency of a route from another rank of the job. From an owner to a rank:
// on different nodes at least one route between nodes is crossed, so at least its latency; on the
// same node either the direct route, or two or more routes: at least the least latency out of the
// owner plus the least into the rank. If there are several owners, the nearest counts.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "core/base/ids.h"
#include "core/bounds/capacity.h"
#include "core/bounds/counted_items.h"
#include "core/topology/topology.h"

namespace reshard {

class JobLatencies {
 public:
  // `ranks` ascending, at least two. Keeps a reference to the topology.
  JobLatencies(const Topology& topology, const std::vector<Rank>& ranks);

  std::int64_t into_ps(Rank rank) { return least_ps(rank, true); }
  std::int64_t between_nodes_ps() const;
  std::int64_t within_node_ps(Rank source, Rank destination);
  // All routes inside nodes have the same latency, and no detour over another node is faster: then
  // a rank gets what it lacks and its node holds after exactly that latency.
  bool uniform_within() const;
  // The least latency of any route inside nodes.
  std::int64_t least_within_ps() const { return least_within_; }
  // The greatest latency inside nodes: no two ranks of a node are further apart.
  std::int64_t greatest_within_ps() const { return greatest_within_; }

 private:
  std::int64_t least_ps(Rank rank, bool into);

  const Topology& topology_;
  std::int64_t ranks_, least_within_, greatest_within_ = 0;
  std::map<std::int32_t, ClassCounts> counts_;  // by node
  std::map<std::tuple<std::int32_t, std::int32_t, bool>, std::int64_t> known_;
};

// The greatest latency from the nearest owner, over elements that have owners on the node of a rank
// that lacks them. (Other elements take the latency between nodes, which is known.)
class OwnerLatency {
 public:
  // `ranks`: the job's, ascending; the lists hold their indices. Keeps references.
  OwnerLatency(const Topology& topology, const std::vector<Rank>& ranks, const MemberLists& holders,
               const MemberLists& needers);

  void add(std::size_t holder_list, std::size_t needer_list);
  std::int64_t greatest_ps() const { return greatest_; }
  const JobLatencies& of_job() const { return latencies_; }

 private:
  const Topology& topology_;
  const std::vector<Rank>& ranks_;
  const MemberLists &holders_, &needers_;
  JobLatencies latencies_;
  std::int64_t greatest_ = 0;
};

}  // namespace reshard
