// SPDX-License-Identifier: BSD-3-Clause
// Capacities of the routes between sets of a job's ranks.
//
// Whatever enters a set crosses one route into it and on that route any hop we like; so for every
// choice of one hop per rule, the distinct resources at those hops limit what can enter. Three
// choices are tried: the first hops, the last hops, and for each rule the hop with the least
// capacity in all (a staging buffer or an oversubscribed spine in mid-route).
//
// Every set X of bounds.h is a set A of job ranks of one node, or the complement of such a set
// within the job. With B the job's other ranks of A's node and R its ranks elsewhere, the routes
// into A come from B (by class of device) and from R (by the one rule between nodes), those into
// the complement go from A to B and to R. So only the number of ranks per class matters: a resource
// is named by what it belongs to (the port of all devices of one class in A, a node's memory, ...)
// and counted with the number of such places. A set costs the pairs of classes in its node, never
// the pairs of ranks.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/base/integers.h"
#include "core/topology/topology.h"

namespace reshard {

// Ranks of one node by class of device, ascending, only classes that occur.
using ClassCounts = std::vector<std::pair<std::int32_t, std::int64_t>>;

class JobCapacities {
 public:
  // `ranks` ascending, all with a device. Keeps a reference to the topology.
  JobCapacities(const Topology& topology, std::vector<Rank> ranks);

  // Into `members`, all on `node`, from the job's other ranks; and into those from `members`. 0
  // where there are no others.
  std::pair<Int128, Int128> into(std::int32_t node, const std::vector<Rank>& members);

  // Of all routes from one set to another, each resource once; `set_of` per rank of the job, every
  // set on one node.
  Int128 between(const std::vector<std::int32_t>& set_of) const;

 private:
  const Topology& topology_;
  std::vector<Rank> ranks_;
  std::map<std::int32_t, ClassCounts> by_node_;
  // Ranks of one class in nodes that hold the same classes have the same surroundings: (node's
  // classes, members' classes) -> into both.
  std::map<std::pair<ClassCounts, ClassCounts>, std::pair<Int128, Int128>> known_;
};

}  // namespace reshard
