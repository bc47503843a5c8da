// SPDX-License-Identifier: BSD-3-Clause
// The holder bound: if a few ranks of a node hold what the others lack, these few must send it.
//
// A scope is the job's ranks on one node, or in one of its groups. Let A be a subset of it. An
// element is counted if some rank of the scope needs it and does not hold it whole (an addend of it
// is held elsewhere), and all ranks of the scope that hold an addend of it, possibly none, are in
// A. Let B be the ranks of A that lack nothing of what is counted. Every counted element crosses at
// least once either a route from A to a rank of the scope, or a route from outside the scope to a
// rank that is not in B. To see this, take a rank n that lacks it:
//
//   n is not in A: no rank of the scope outside A holds any of it, so the first of it that
//   arrives there comes from A or from outside the scope;
//   n is in A, and not in B since it lacks this: what it receives comes from A, from outside the
//   scope, or from a rank of the scope outside A, which got it as above.
//
//   T >= least latency of these routes + counted bytes / capacity of these routes
//
// The capacity is taken as for cap_in(X) (bounds.h): distinct resources, the least of three choices
// of hops. A multicast crosses each hop once, and a fold made by a switch leaves A or comes from
// elsewhere like any other transfer, so the bound holds with both. Routes out of the scope's ranks
// outside A and routes from outside the scope into B do not count, which makes this stronger than a
// cut: NVLink out of three holders plus the NICs of seven ranks is less than all that the node has.
//
// The best A is searched for by peeling: begin with the whole scope, repeatedly drop the rank that
// holds least of what is counted, which removes what it holds from the count, and keep the best
// bound on the way.
#pragma once

#include <bitset>
#include <cstdint>
#include <span>
#include <vector>

#include "core/bounds/capacity.h"
#include "core/bounds/counted_items.h"

namespace reshard {

// Disjoint scopes of a job: per rank (by index) its scope, -1 for none; per scope its node.
struct Scopes {
  std::vector<std::int32_t> scope_of;
  std::vector<std::int32_t> node;
};

// Counts, per scope and list of holders, what ranks of the scope lack.
class HeldCount {
 public:
  // `folds`: elements have several addends, so that no rank holds one whole.
  HeldCount(const MemberLists& holders, const MemberLists& needers, bool folds, Scopes scopes);

  void add(std::size_t holder_list, std::size_t needer_list, std::int64_t elements);

  // The greatest bound over all scopes. `lacks`: per rank (by index), whether it lacks anything.
  // `ranks`: the job's.
  std::int64_t bound_ps(JobCapacities& capacities, const Topology& topology,
                        const std::vector<Rank>& ranks, const std::vector<bool>& lacks,
                        std::int64_t element_bytes) const;

 private:
  static constexpr std::size_t kExactScope = 128;
  using ScopeRanks = std::bitset<kExactScope>;  // by place in the scope; unused in a larger one

  // The ranks of one list in one scope.
  struct ScopeMembers {
    std::int32_t scope;
    std::size_t begin, end;  // of the ranks
    ScopeRanks places;
  };
  struct Parts {
    std::vector<std::int32_t> ranks;  // ascending within a part
    std::vector<ScopeMembers> parts;  // ascending scopes within a list
    std::vector<std::size_t> begins{0};
    std::span<const std::int32_t> ranks_of(const ScopeMembers& part) const {
      return std::span(ranks).subspan(part.begin, part.end - part.begin);
    }
  };
  // Elements that ranks of a scope lack, and which ranks lack them.
  struct Lack {
    Int128 elements = 0;
    ScopeRanks ranks;
  };
  class Peeling;

  bool is_exact(std::int32_t scope) const {
    return members_[to_index(scope)].size() <= kExactScope;
  }
  Parts parts_of(const MemberLists& lists) const;
  // Whether some rank of `needing` is not in `holding`.
  bool exceeds(const ScopeMembers& needing, const ScopeMembers& holding) const;

  Scopes scopes_;
  bool folds_;
  std::vector<std::vector<std::int32_t>> members_;  // per scope its ranks
  std::vector<std::size_t> place_of_;               // per rank: its place in its scope
  Parts holders_, needers_;
  std::vector<Lack> held_;    // per part of the holders
  std::vector<Lack> absent_;  // per scope: elements of which none of its ranks holds an addend
};

}  // namespace reshard
