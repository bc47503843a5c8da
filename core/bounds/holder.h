// SPDX-License-Identifier: BSD-3-Clause
// The holder bound: where a few ranks of a node hold what the others lack, these few must send it.
//
// A scope is the job's ranks of one node, or of one of its groups. Let A be ranks of it and count
// each element that some rank of the scope needs and does not hold whole (an addend of it is held
// elsewhere), if the scope's holders of its addends, all of them, are in A. None is fine. Let B be
// the ranks of A that lack nothing of what is counted. Every counted element crosses, once at
// least, a route from A to a rank of the scope or a route from outside the scope into a rank that
// is not of B. For take a rank n that lacks it.
//
//   n is not in A: no rank of the scope outside A holds any of it, and what comes there first comes
//   from A or from outside the scope;
//   n is in A, and not in B since it lacks this: what it receives comes from A; or from outside the
//   scope; or from a rank of the scope outside A, which had it as above.
//
//   T >= least latency of these routes + counted bytes / capacity of these routes
//
// The capacity is taken as cap_in(X) is (bounds.h): distinct resources, the least of three choices
// of hops. A multicast crosses each hop once, and a fold that a switch makes leaves A or comes from
// elsewhere as any other transfer: the bound holds with both. Ranks outside A and ranks that lack
// nothing give the others nothing of their own; that both go out of the count makes this more than
// a cut: NVLink out of three holders and the NICs of seven ranks are less than what the node has.
//
// The best A is looked for by peeling: begin with the whole scope, drop the rank that holds least
// of what is counted, so that this is no longer counted, and keep the best on the way.
#pragma once

#include <bitset>
#include <cstdint>
#include <span>
#include <vector>

#include "core/bounds/atoms.h"
#include "core/bounds/capacity.h"

namespace reshard {

// Disjoint scopes of a job: per rank by index its scope, -1 for none; per scope its node.
struct Scopes {
  std::vector<std::int32_t> scope_of;
  std::vector<std::int32_t> node;
};

// Counts, per scope and list of holders, what ranks of the scope lack.
class HeldCount {
 public:
  // `folds`: an element has several addends, so that no rank holds it whole.
  HeldCount(const MemberLists& holders, const MemberLists& needers, bool folds, Scopes scopes);

  void add(std::size_t holder_list, std::size_t needer_list, std::int64_t elements);

  // The greatest bound over all scopes. `lacks`: per rank by index, whether it lacks anything.
  // `ranks`: of the job.
  std::int64_t bound_ps(JobCapacities& capacities, const Topology& topology,
                        const std::vector<Rank>& ranks, const std::vector<bool>& lacks,
                        std::int64_t element_bytes) const;

 private:
  static constexpr std::size_t kExactScope = 128;
  using ScopeRanks = std::bitset<kExactScope>;  // by place in the scope; none in a larger one

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
  // Elements that ranks of a scope lack, and which ranks these are.
  struct Lack {
    Int128 elements = 0;
    ScopeRanks ranks;
  };
  class Peeling;

  bool is_exact(std::int32_t scope) const {
    return members_[to_index(scope)].size() <= kExactScope;
  }
  Parts parts_of(const MemberLists& lists) const;
  // Some rank of `needing` is not of `holding`.
  bool exceeds(const ScopeMembers& needing, const ScopeMembers& holding) const;

  Scopes scopes_;
  bool folds_;
  std::vector<std::vector<std::int32_t>> members_;  // per scope its ranks
  std::vector<std::size_t> place_of_;               // per rank, in its scope
  Parts holders_, needers_;
  std::vector<Lack> held_;     // per part of the holders
  std::vector<Lack> strange_;  // per scope: of what none of its ranks holds an addend of
};

}  // namespace reshard
