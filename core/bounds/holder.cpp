// SPDX-License-Identifier: BSD-3-Clause
#include "core/bounds/holder.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

namespace reshard {

HeldCount::HeldCount(const MemberLists& holders, const MemberLists& needers, bool folds,
                     Scopes scopes)
    : scopes_(std::move(scopes)),
      folds_(folds),
      members_(scopes_.node.size()),
      place_of_(scopes_.scope_of.size(), 0),
      absent_(scopes_.node.size()) {
  for (std::size_t rank = 0; rank < place_of_.size(); ++rank) {
    if (scopes_.scope_of[rank] < 0) continue;
    std::vector<std::int32_t>& members = members_[to_index(scopes_.scope_of[rank])];
    place_of_[rank] = members.size();
    members.push_back(static_cast<std::int32_t>(rank));
  }
  holders_ = parts_of(holders);
  needers_ = parts_of(needers);
  held_.resize(holders_.parts.size());
}

HeldCount::Parts HeldCount::parts_of(const MemberLists& lists) const {
  Parts out;
  std::vector<std::pair<std::int32_t, std::int32_t>> placed;  // (scope, rank)
  for (std::size_t list = 0; list < lists.size(); ++list) {
    placed.clear();
    for (const Member& member : lists.list(list))
      if (std::int32_t scope = scopes_.scope_of[to_index(member.rank)]; scope >= 0)
        placed.push_back({scope, member.rank});
    std::sort(placed.begin(), placed.end());
    for (auto [scope, rank] : placed) {
      if (out.parts.size() == out.begins.back() || out.parts.back().scope != scope)
        out.parts.push_back({scope, out.ranks.size(), out.ranks.size(), {}});
      out.ranks.push_back(rank);
      out.parts.back().end = out.ranks.size();
      if (is_exact(scope)) out.parts.back().places.set(place_of_[to_index(rank)]);
    }
    out.begins.push_back(out.parts.size());
  }
  return out;
}

bool HeldCount::exceeds(const ScopeMembers& needing, const ScopeMembers& holding) const {
  if (is_exact(needing.scope)) return (needing.places & ~holding.places).any();
  std::span<const std::int32_t> needers = needers_.ranks_of(needing),
                                holders = holders_.ranks_of(holding);
  return needers.size() > holders.size() ||
         !std::includes(holders.begin(), holders.end(), needers.begin(), needers.end());
}

void HeldCount::add(std::size_t holder_list, std::size_t needer_list, std::int64_t elements) {
  std::size_t at = holders_.begins[holder_list], end = holders_.begins[holder_list + 1];
  for (std::size_t n = needers_.begins[needer_list]; n < needers_.begins[needer_list + 1]; ++n) {
    const ScopeMembers& needing = needers_.parts[n];
    while (at < end && holders_.parts[at].scope < needing.scope) ++at;
    if (at == end || holders_.parts[at].scope != needing.scope) {
      Lack& lack = absent_[to_index(needing.scope)];
      lack.elements += elements;
      lack.ranks |= needing.places;
    } else if (folds_ || exceeds(needing, holders_.parts[at])) {
      held_[at].elements += elements;
      held_[at].ranks |= folds_ ? needing.places : needing.places & ~holders_.parts[at].places;
    }
  }
}

// Finds the best A of one scope after another, dropping rank by rank.
class HeldCount::Peeling {
 public:
  Peeling(const HeldCount& count, JobCapacities& capacities, const Topology& topology,
          const std::vector<Rank>& ranks, const std::vector<bool>& lacks)
      : count_(count),
        capacities_(capacities),
        topology_(topology),
        ranks_(ranks),
        lacks_(lacks),
        states_(ranks.size()) {}

  // `parts`: those of the scope's holders with elements that some rank lacks.
  std::int64_t bound_ps(std::int32_t scope, const std::vector<std::size_t>& parts,
                        std::int64_t element_bytes) {
    begin(scope, parts);
    std::int32_t node = count_.scopes_.node[to_index(scope)];
    for (std::int64_t bound = 0;; drop_least()) {
      if (counted_ == 0) return bound;
      Passage passage = capacities_.of_scope(node, scope_parts());
      bound = std::max(bound, passage.least_ps(counted_ * element_bytes));
      if (order_.size() == 1) return bound;
    }
  }

 private:
  struct State {
    bool in_a = false;
    Int128 owned = 0;                // counted elements that it holds
    std::int64_t lacks = 0;          // parts of which it lacks a counted element
    std::vector<std::size_t> parts;  // parts that it holds
  };
  // Drop order: the rank that owns least; of equal ones one that receives, since routes into an
  // idle one do not count.
  using Key = std::tuple<Int128, bool, std::int32_t>;
  Key key(std::int32_t rank) const {
    const State& state = states_[to_index(rank)];
    return {state.owned, state.lacks == 0, rank};
  }

  void begin(std::int32_t scope, const std::vector<std::size_t>& parts) {
    members_ = &count_.members_[to_index(scope)];
    const Lack& absent = count_.absent_[to_index(scope)];
    bool exact = count_.is_exact(scope);
    for (std::size_t place = 0; place < members_->size(); ++place) {
      std::int32_t rank = (*members_)[place];
      states_[to_index(rank)] = {true, 0, exact ? absent.ranks[place] : lacks_[to_index(rank)], {}};
    }
    counted_ = absent.elements;
    for (std::size_t part : parts) {
      counted_ += count_.held_[part].elements;
      for (std::int32_t rank : count_.holders_.ranks_of(count_.holders_.parts[part])) {
        states_[to_index(rank)].owned += count_.held_[part].elements;
        states_[to_index(rank)].parts.push_back(part);
      }
      for_lacking(part, [&](std::int32_t rank) { ++states_[to_index(rank)].lacks; });
    }
    dropped_.clear();
    order_.clear();
    sides_ = {};
    for (std::int32_t rank : *members_) enter(rank);
  }

  // Adds a rank to A, or removes it, under its current key.
  void enter(std::int32_t rank) {
    order_.insert(key(rank));
    ++sides_[states_[to_index(rank)].lacks > 0 ? 1 : 2][device_class(rank)];
  }
  void leave(std::int32_t rank) {
    order_.erase(key(rank));
    auto& side = sides_[states_[to_index(rank)].lacks > 0 ? 1 : 2];
    if (--side[device_class(rank)] == 0) side.erase(device_class(rank));
  }

  void drop_least() {
    std::int32_t rank = std::get<2>(*order_.begin());
    leave(rank);
    states_[to_index(rank)].in_a = false;
    ++sides_[0][device_class(rank)];
    for (std::size_t part : states_[to_index(rank)].parts)
      if (dropped_.insert(part).second) count_no_more(part);
  }

  void count_no_more(std::size_t part) {
    Int128 elements = count_.held_[part].elements;
    counted_ -= elements;
    for (std::int32_t rank : count_.holders_.ranks_of(count_.holders_.parts[part]))
      change(rank, [&](State& state) { state.owned -= elements; });
    for_lacking(part,
                [&](std::int32_t rank) { change(rank, [](State& state) { --state.lacks; }); });
  }

  template <typename Change>
  void change(std::int32_t rank, const Change& apply) {
    State& state = states_[to_index(rank)];
    if (state.in_a) leave(rank);
    apply(state);
    if (state.in_a) enter(rank);
  }

  template <typename Visit>
  void for_lacking(std::size_t part, const Visit& visit) const {
    const ScopeRanks& places = count_.held_[part].ranks;
    for (std::size_t place = 0; places.any() && place < members_->size(); ++place)
      if (places[place]) visit((*members_)[place]);
  }

  std::int32_t device_class(std::int32_t rank) const {
    return topology_.class_of(ranks_[to_index(rank)]);
  }

  ScopeParts scope_parts() const {
    auto counts = [](const auto& side) { return ClassCounts(side.begin(), side.end()); };
    return {counts(sides_[0]), counts(sides_[1]), counts(sides_[2])};
  }

  const HeldCount& count_;
  JobCapacities& capacities_;
  const Topology& topology_;
  const std::vector<Rank>& ranks_;
  const std::vector<bool>& lacks_;
  const std::vector<std::int32_t>* members_ = nullptr;
  std::vector<State> states_;                                  // per rank
  std::set<Key> order_;                                        // A in drop order
  std::set<std::size_t> dropped_;                              // parts that are no longer counted
  Int128 counted_ = 0;                                         // elements
  std::array<std::map<std::int32_t, std::int64_t>, 3> sides_;  // class -> ranks; see ScopeParts
};

std::int64_t HeldCount::bound_ps(JobCapacities& capacities, const Topology& topology,
                                 const std::vector<Rank>& ranks, const std::vector<bool>& lacks,
                                 std::int64_t element_bytes) const {
  std::vector<std::vector<std::size_t>> parts(members_.size());
  for (std::size_t part = 0; part < held_.size(); ++part)
    if (held_[part].elements > 0) parts[to_index(holders_.parts[part].scope)].push_back(part);
  Peeling peeling(*this, capacities, topology, ranks, lacks);
  std::int64_t bound = 0;
  for (std::size_t scope = 0; scope < members_.size(); ++scope)
    bound = std::max(
        bound, peeling.bound_ps(static_cast<std::int32_t>(scope), parts[scope], element_bytes));
  return bound;
}

}  // namespace reshard
