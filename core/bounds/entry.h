// SPDX-License-Identifier: BSD-3-Clause
// The entry bound: how soon what a node lacks can be with the ranks of it that need it. Let L be
// the latency of routes between nodes, l the least inside a node. An element is far from a node k
// if some addend of it is held in no rank of k; anything that carries this addend into k is an
// entry of the element. What a rank of k has of it came by an entry at the rank itself, straight
// from another node, or by a route inside k from another rank that had it.
//
// By rank. F bytes are far from a rank's node and needed by it. Until time t at most c (t - L) of
// them come straight, c the capacity of routes between nodes into the rank. The others entered at
// another rank first, and then crossed a route inside k: until t no more than entered at the node's
// other ranks until t - l, and than routes inside k let through since L + l, so at most m (t - L -
// l), m the lesser of the two capacities. Hence the least t with
//
//   c (t - L) + m max(0, t - L - l) >= F
//
// By node. Of each far element some entry is there until t - l, or every rank of k that needs it
// has an entry of its own: a route inside k begins no later than t - l, at a rank that has it. Let
// s(n) be the bytes that n ranks of k need, x(n) those of them with such an early entry. Then
//
//   sum of x(n) <= all that enters k until t - l
//   sum of n (s(n) - x(n)) <= all that enters the ranks of k with a need from t - l to t
//
// Only ranks that hold something far from a node send until L + min(l, L), and no other capacity
// leads out of them; later all may. The bound is the least t for which x exists: the elements that
// most ranks need should enter early. It is not drawn where the network's switches multicast, which
// makes several entries of one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/integers.h"
#include "core/bounds/atoms.h"
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

// What may enter a node, in bytes per second: at all and at ranks with a need, each from ranks that
// hold something far at first, and from all ranks later.
struct NodeEntrance {
  Int128 first, first_at_need, later, later_at_need;
  std::int64_t between_ps, inside_ps, spread_ps;  // L, l, min(l, L)
  bool operator==(const NodeEntrance&) const = default;
};

// `by_needers[n]`: bytes that n ranks of the node need. 0 without bytes; cut to int64.
std::int64_t node_entry_bound_ps(std::span<const Int128> by_needers, const NodeEntrance& entrance);

// Elements that ranks need and their nodes lack.
class FarCount {
 public:
  // `node_of`: per rank of the job by index. Keeps references to the lists.
  FarCount(const MemberLists& holders, const MemberLists& needers,
           std::vector<std::int32_t> node_of);

  // `has_all(node)`: whether its ranks hold every addend of the list.
  template <class HasAll>
  void add(std::size_t holder_list, std::size_t needer_list, std::int64_t elements,
           const HasAll& has_all) {
    std::span<const Member> needers = needers_.list(needer_list);
    for (std::size_t first = 0, last = 0; first < needers.size(); first = last) {
      std::int32_t node = node_at(needers[first]);
      while (last < needers.size() && node_at(needers[last]) == node) ++last;
      if (!has_all(node))
        add_far(holder_list, node, needers.subspan(first, last - first), elements);
    }
  }

  // The greatest over ranks and nodes; elements have `width` bytes. `ranks`: of the job.
  std::int64_t bound_ps(std::int64_t width, const Topology& topology,
                        const std::vector<Rank>& ranks, JobCapacities& capacities,
                        bool network_multicasts) const;

 private:
  std::int32_t node_at(const Member& member) const { return node_of_[to_index(member.rank)]; }
  void add_far(std::size_t holder_list, std::int32_t node, std::span<const Member> needers,
               std::int64_t elements);
  std::int64_t rank_bound_ps(std::int64_t width, const Topology& topology,
                             const std::vector<Rank>& ranks, const JobCapacities& capacities) const;
  std::int64_t node_bound_ps(std::int64_t width, const Topology& topology,
                             const std::vector<Rank>& ranks, JobCapacities& capacities) const;

  const MemberLists &holders_, &needers_;
  std::vector<std::int32_t> node_of_;
  std::vector<Int128> of_rank_;                  // by rank
  std::vector<std::vector<Int128>> by_needers_;  // by node
  std::vector<bool> gives_;                      // by list of holders
};

}  // namespace reshard
