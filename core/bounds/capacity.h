// SPDX-License-Identifier: BSD-3-Clause
// Capacities of the routes between sets of a job's ranks.
//
// Everything that enters a set crosses one route into it, and any hop of that route can be chosen
// to count it. So for every choice of one hop per rule, the distinct resources at those hops limit
// what can enter. Three choices are tried: the first hops, the last hops, and for each rule the hop
// with the least total capacity (a staging buffer, or an oversubscribed spine in the middle of the
// route).
//
// Every set X of bounds.h is a set A of the job's ranks on one node, or the complement of such a
// set within the job. Let B be the job's other ranks on A's node and R its ranks on other nodes.
// Routes into A come from B (by device class) and from R (by the one rule between nodes); routes
// into the complement go from A to B and to R. So only the number of ranks per class matters: a
// resource is identified by what it belongs to (the port of all devices of one class in A, a node's
// memory, ...) and its capacity multiplied by the number of those. A set costs the pairs of classes
// on its node, never the pairs of ranks.
//
// The same identification serves two further bounds: the routes over which the other ranks of a
// node get what only some of them hold (holder.h), and all routes of a job, split into those inside
// and those between the sets of a level (price.h).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/integers.h"
#include "core/topology/topology.h"

namespace reshard {

// How switches that can reduce and multicast are used: links alone only forward; NCCL's collectives
// can use both abilities.
enum class Switches : std::uint8_t { Forward, Reduce };

// Which of the topology's switches reduce and multicast under such use.
struct Reducing {
  bool nvlink, network;
  Reducing(const Machine& machine, Switches use)
      : nvlink(machine.nvls && use == Switches::Reduce),
        network(machine.sharp && use == Switches::Reduce) {}
};

// Number of ranks of one node per device class: ascending, only classes that occur.
using ClassCounts = std::vector<std::pair<std::int32_t, std::int64_t>>;
ClassCounts classes_of(const Topology& topology, std::span<const Rank> ranks);

// Calls visit(node, index of its first rank, its ranks) for every node; `ranks` ascending.
template <class Visit>
void for_each_node(const Topology& topology, std::span<const Rank> ranks, const Visit& visit) {
  for (std::size_t first = 0, last = 0; first < ranks.size(); first = last) {
    std::int32_t node = topology.node_of(ranks[first]);
    while (last < ranks.size() && topology.node_of(ranks[last]) == node) ++last;
    visit(node, first, ranks.subspan(first, last - first));
  }
}

// What a set of routes lets through: at most this rate, and nothing before this latency.
struct Passage {
  Int128 bytes_per_s = 0;  // 0 if there are no routes
  std::int64_t latency_ps = std::numeric_limits<std::int64_t>::max();

  // The least time in which `bytes` get through, rounded up and capped at the maximum of int64; 0
  // for 0 bytes.
  std::int64_t least_ps(Int128 bytes) const;
};

// Capacity of distinct resources, of which every route crosses at least one, by the routes that
// cross them: only those inside sets, only those between sets, or both.
struct SharedCapacity {
  Int128 inside = 0, between = 0, both = 0;
};

// The routes of a job, split by the sets of a level.
struct LevelPassages {
  Passage between;
  std::int64_t latency_ps;  // the least of all routes
  // One per choice of hops. Empty if receipts cannot be counted at resources because switches
  // multicast in front of them.
  std::vector<SharedCapacity> choices;
};

// Disjoint parts of a scope, by device class. The counted routes go from `senders` and
// `idle_senders` to all three parts, and from outside the scope to all parts but `idle_senders`.
struct ScopeParts {
  ClassCounts others, senders, idle_senders;  // idle senders are not repeated in `senders`
  auto operator<=>(const ScopeParts&) const = default;
};

class JobCapacities {
 public:
  // `ranks` ascending, all with a device. Keeps a reference to the topology.
  JobCapacities(const Topology& topology, std::vector<Rank> ranks);

  // The routes into `members`, all on `node`, from the job's other ranks, and the routes back. Rate
  // 0 if there are no others.
  std::pair<Passage, Passage> into(std::int32_t node, const std::vector<Rank>& members);

  // The routes into `members`, all on `node`, from other nodes; those from the node's other ranks;
  // and those into the node's other ranks from other nodes.
  struct NodePassages {
    Passage direct, within, gate;
  };
  NodePassages passages_into(std::int32_t node, const std::vector<Rank>& members) const;
  // The routes from `senders` ranks on other nodes into `members`, all on one node.
  Passage from_elsewhere(std::int64_t senders, const std::vector<Rank>& members);

  // All routes of the job, each resource once; `set_of` per rank of the job, every set on one node.
  LevelPassages of_level(const std::vector<std::int32_t>& set_of, Reducing switches) const;

  // The counted routes of a scope, which consists of ranks of `node`.
  Passage of_scope(std::int32_t node, const ScopeParts& parts);

 private:
  std::int64_t elsewhere(const ClassCounts& here) const;

  const Topology& topology_;
  std::vector<Rank> ranks_;
  std::map<std::int32_t, ClassCounts> by_node_;
  // Equal classes of members on nodes with equal classes have the same routes: (node's classes,
  // members' classes) -> the two results of into().
  std::map<std::pair<ClassCounts, ClassCounts>, std::pair<Passage, Passage>> known_;
  std::map<std::pair<ClassCounts, ScopeParts>, Passage> known_scopes_;
  std::map<std::pair<std::int64_t, ClassCounts>, Passage> known_from_elsewhere_;
};

}  // namespace reshard
