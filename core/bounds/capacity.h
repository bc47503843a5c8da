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
//
// The same names serve the two further bounds: the routes by which what some ranks of a node hold
// comes to the others (holder.h), and all routes of a job, told apart by whether they stay inside
// the sets of a level (price.h).
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

// What switches do that could reduce and multicast: links alone only forward, NCCL's collectives
// may use more.
enum class Switches : std::uint8_t { Forward, Reduce };

// The topology's switches that reduce and multicast as they are used.
struct Reducing {
  bool nvlink, network;
  Reducing(const Machine& machine, Switches use)
      : nvlink(machine.nvls && use == Switches::Reduce),
        network(machine.sharp && use == Switches::Reduce) {}
};

// Ranks of one node by class of device, ascending, only classes that occur.
using ClassCounts = std::vector<std::pair<std::int32_t, std::int64_t>>;
ClassCounts classes_of(const Topology& topology, std::span<const Rank> ranks);

// visit(node, index of its first rank, its ranks) for every node, of ascending ranks.
template <class Visit>
void for_each_node(const Topology& topology, std::span<const Rank> ranks, const Visit& visit) {
  for (std::size_t first = 0, last = 0; first < ranks.size(); first = last) {
    std::int32_t node = topology.node_of(ranks[first]);
    while (last < ranks.size() && topology.node_of(ranks[last]) == node) ++last;
    visit(node, first, ranks.subspan(first, last - first));
  }
}

// What a set of routes lets through: no more than this rate, and nothing before this latency.
struct Passage {
  Int128 bytes_per_s = 0;  // 0 without routes
  std::int64_t latency_ps = std::numeric_limits<std::int64_t>::max();

  // The least time in which `bytes` get through, rounded up and cut to int64; 0 without bytes.
  std::int64_t least_ps(Int128 bytes) const;
};

// Distinct resources of which every route crosses one at least, by the routes that do: those inside
// sets only, those between sets only, or both.
struct SharedCapacity {
  Int128 inside = 0, between = 0, both = 0;
};

// The routes of a job, told apart by the sets of a level.
struct LevelPassages {
  Passage between;
  std::int64_t latency_ps;  // of all routes
  // One per choice of hops. Empty where receipts cannot be counted at resources, since switches
  // multicast in front of them.
  std::vector<SharedCapacity> choices;
};

// Disjoint parts of a scope, by class of device: its routes go from `senders` to all three, and from
// outside the scope to all but `idle_senders`.
struct ScopeParts {
  ClassCounts others, senders, idle_senders;  // idle senders are senders, too, and not named again
  auto operator<=>(const ScopeParts&) const = default;
};

class JobCapacities {
 public:
  // `ranks` ascending, all with a device. Keeps a reference to the topology.
  JobCapacities(const Topology& topology, std::vector<Rank> ranks);

  // Into `members`, all on `node`, from the job's other ranks; and into those from `members`. 0
  // where there are no others.
  std::pair<Passage, Passage> into(std::int32_t node, const std::vector<Rank>& members);

  // From other nodes into `members`, all on `node`; from its other ranks into those; and from other
  // nodes into its other ranks.
  struct Ways {
    Passage straight, beside, gate;
  };
  Ways ways_into(std::int32_t node, const std::vector<Rank>& members) const;
  // From `senders` ranks on other nodes into `members`, all on one.
  Passage from_elsewhere(std::int64_t senders, const std::vector<Rank>& members);

  // Of all routes, each resource once; `set_of` per rank of the job, every set on one node.
  LevelPassages of_level(const std::vector<std::int32_t>& set_of, Reducing switches) const;

  // Of a scope's routes, the scope being ranks of `node`.
  Passage of_scope(std::int32_t node, const ScopeParts& parts);

 private:
  std::int64_t elsewhere(const ClassCounts& here) const;

  const Topology& topology_;
  std::vector<Rank> ranks_;
  std::map<std::int32_t, ClassCounts> by_node_;
  // Ranks of one class in nodes that hold the same classes have the same surroundings: (node's
  // classes, members' classes) -> into both.
  std::map<std::pair<ClassCounts, ClassCounts>, std::pair<Passage, Passage>> known_;
  std::map<std::pair<ClassCounts, ScopeParts>, Passage> known_scopes_;
  std::map<std::pair<std::int64_t, ClassCounts>, Passage> known_from_elsewhere_;
};

}  // namespace reshard
