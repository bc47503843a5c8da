// SPDX-License-Identifier: BSD-3-Clause
// The entry bound: how soon the ranks of a node can have what they need and the node lacks. Let L
// be the latency of routes between nodes and l the least latency inside a node. An element is far
// from a node k if no rank of k holds some addend of it; any transfer that carries this addend into
// k is an entry of the element. A rank of k gets the element by an entry at the rank itself,
// directly from another node, or over a route inside k from another rank that had it.
//
// By rank. Let F be the bytes that a rank needs and that are far from its node. By time t at most c
// (t - L) of them have come directly, where c is the capacity of routes from other nodes into the
// rank. The others entered at another rank first and then crossed a route inside k. By time t these
// are no more than entered at the node's other ranks by t - l, and no more than routes inside k let
// through since L + l: at most m (t - L - l), where m is the lesser of the two capacities. Hence
// the bound is the least t with
//
//   c (t - L) + m max(0, t - L - l) >= F
//
// By node. For each far element, either some entry has arrived by t - l, or every rank of k that
// needs it has its own entry: a route inside k that ends by t begins by t - l, at a rank that has
// the element. Let s(n) be the bytes that exactly n ranks of k need, and x(n) those of them with
// such an early entry. Then
//
//   sum of x(n) <= everything that enters k by t - l
//   sum of n (s(n) - x(n)) <= everything that enters the needing ranks of k from t - l to t
//
// Until L + min(l, L) only ranks that hold something far from a node can send it, so only the
// capacity out of these counts; later all ranks can send. The bound is the least t for which such x
// exist: the elements that the most ranks need should enter early. It is not computed if the
// network's switches multicast, since one transfer can then be several entries.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/integers.h"
#include "core/bounds/capacity.h"
#include "core/bounds/counted_items.h"

namespace reshard {

// The routes over which F can reach a rank.
struct EntryPassages {
  Passage direct;              // from other nodes
  Int128 relayed_bytes_per_s;  // m, the lesser of the two capacities; 0: alone on its node
  std::int64_t inside_ps;      // l, the least latency inside the node
};

// 0 for 0 bytes; rounded up and capped at the maximum of int64.
std::int64_t entry_bound_ps(Int128 bytes, const EntryPassages& passages);

// Rates into a node in bytes per second: into all its ranks, and into ranks with a need; each at
// first from the ranks that hold something far, and later from all ranks.
struct NodeEntrance {
  Int128 first, first_at_need, later, later_at_need;
  std::int64_t between_ps, inside_ps, spread_ps;  // L, l, min(l, L)
  bool operator==(const NodeEntrance&) const = default;
};

// `by_needers[n]`: bytes that n ranks of the node need. 0 for 0 bytes; capped at the maximum of
// int64.
std::int64_t node_entry_bound_ps(std::span<const Int128> by_needers, const NodeEntrance& entrance);

// Counts the elements that ranks need and their nodes lack.
class FarCount {
 public:
  // `node_of`: per rank of the job (by index). Keeps references to the lists.
  FarCount(const MemberLists& holders, const MemberLists& needers,
           std::vector<std::int32_t> node_of);

  // `has_all(node)`: whether the node's ranks hold every addend of the list.
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

  // The greatest bound over ranks and nodes; elements have `width` bytes. `ranks`: the job's.
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
  std::vector<Int128> of_rank_;                  // elements per rank
  std::vector<std::vector<Int128>> by_needers_;  // per node: elements by number of needing ranks
  std::vector<bool> sends_;  // per list of holders: some of it is far from a node
};

}  // namespace reshard
