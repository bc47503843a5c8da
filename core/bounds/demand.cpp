// SPDX-License-Identifier: BSD-3-Clause
// In(X), the least receipts and what they cost at other prices, level by level.
//
// At one level (single ranks, nodes, ...) a list of holders becomes a short list of sets, each with
// three facts about the addends: does the set hold all of them, is it the only holder of one, does
// it hold one of the packed ones. A list of needers becomes a list of sets. Both are worked out
// once per list; an atom then merges two short lists:
//
//   X must receive                 X needs, and does not hold all addends
//   the complement of X must       another set needs, and X is the only holder of some addend
//   receipts                       see bounds.h; their prices, price.h
#include <algorithm>
#include <limits>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/base/limits.h"
#include "core/bounds/atoms.h"
#include "core/bounds/bounds.h"
#include "core/bounds/entry.h"
#include "core/bounds/holder.h"
#include "core/bounds/latency.h"

namespace reshard {
namespace {

// One set among those that hold a list's addends.
struct Holding {
  std::int32_t set;
  bool complete = false;  // holds every addend
  bool sole = false;      // some addend is held here only
  bool packed = false;    // holds an addend of the packing
};

struct HoldingList {
  std::vector<Holding> holdings;  // ascending sets
  std::int64_t packing = 0;       // addends with pairwise disjoint holders
};

// `set_of` per rank of the job; ranks outside every set share one further set.
struct LevelView {
  std::vector<std::int32_t> set_of;
  std::int32_t sets = 0;  // the further set not counted
  bool reduced_on_the_way = false;
  bool folds_dearly = false;  // a price above 1 is worth a try
};

HoldingList holding_list(std::span<const Member> members, std::int64_t addends,
                         const LevelView& level) {
  std::vector<std::pair<std::int64_t, std::int32_t>> held;  // (addend, set), distinct
  for (const Member& member : members)
    held.push_back({member.addend, level.set_of[to_index(member.rank)]});
  std::sort(held.begin(), held.end());
  held.erase(std::unique(held.begin(), held.end()), held.end());

  HoldingList out;
  for (auto [addend, set] : held) out.holdings.push_back({set});
  auto by_set = [](const Holding& a, const Holding& b) { return a.set < b.set; };
  std::sort(out.holdings.begin(), out.holdings.end(), by_set);
  std::vector<std::int64_t> counts;  // addends per set
  for (std::size_t i = 0; i < out.holdings.size(); ++i) {
    if (i == 0 || out.holdings[i].set != out.holdings[i - 1].set) counts.push_back(0);
    ++counts.back();
  }
  out.holdings.erase(std::unique(out.holdings.begin(), out.holdings.end(),
                                 [](const Holding& a, const Holding& b) { return a.set == b.set; }),
                     out.holdings.end());
  for (std::size_t i = 0; i < counts.size(); ++i) out.holdings[i].complete = counts[i] == addends;
  auto holding = [&](std::int32_t set) -> Holding& {
    return *std::lower_bound(out.holdings.begin(), out.holdings.end(), Holding{set}, by_set);
  };

  // Of `held`, one per addend: (holders, begin).
  std::vector<std::pair<std::size_t, std::size_t>> spans;
  for (std::size_t i = 0; i < held.size();) {
    std::size_t j = i;
    while (j < held.size() && held[j].first == held[i].first) ++j;
    spans.push_back({j - i, i});
    if (j - i == 1) holding(held[i].second).sole = true;
    i = j;
  }
  // Addends with few holders first: they leave the most room.
  std::sort(spans.begin(), spans.end());
  for (auto [size, begin] : spans) {
    bool is_free = true;
    for (std::size_t i = begin; i < begin + size; ++i)
      is_free = is_free && !holding(held[i].second).packed;
    if (!is_free) continue;
    ++out.packing;
    for (std::size_t i = begin; i < begin + size; ++i) holding(held[i].second).packed = true;
  }
  return out;
}

// Sets per list, one after the other.
struct NeedLists {
  std::vector<std::int32_t> sets;
  std::vector<std::size_t> begins{0};
  std::span<const std::int32_t> list(std::size_t i) const {
    return std::span(sets).subspan(begins[i], begins[i + 1] - begins[i]);
  }
};

class LevelCount {
 public:
  LevelCount(const MemberLists& holders, const MemberLists& needers, std::int64_t addends,
             LevelView level)
      : in_(to_index(level.sets) + 1),
        in_complement_(in_),
        reduced_on_the_way_(level.reduced_on_the_way),
        needers_(&needers) {
    if (level.folds_dearly) price_.fold_price = addends - 1;
    for (std::size_t i = 0; i < holders.size(); ++i)
      holdings_.push_back(holding_list(holders.list(i), addends, level));
    for (std::size_t i = 0; i < needers.size(); ++i) {
      std::size_t first = needs_.sets.size();
      for (const Member& member : needers.list(i))
        needs_.sets.push_back(level.set_of[to_index(member.rank)]);
      auto begin = needs_.sets.begin() + static_cast<std::ptrdiff_t>(first);
      std::sort(begin, needs_.sets.end());
      needs_.sets.erase(std::unique(begin, needs_.sets.end()), needs_.sets.end());
      needs_.begins.push_back(needs_.sets.size());
    }
  }

  // The least receipts of one element, by this level's sets.
  std::int64_t add(std::size_t holder_list, std::size_t needer_list, std::int64_t elements) {
    const HoldingList& holding = holdings_[holder_list];
    std::span<const std::int32_t> needs = needs_.list(needer_list);
    std::int64_t lacking = 0;
    bool packed_need = false;
    auto at = holding.holdings.begin(), end = holding.holdings.end();
    for (std::int32_t set : needs) {
      while (at != end && at->set < set) ++at;
      bool holds = at != end && at->set == set;
      if (holds && at->packed) packed_need = true;
      if (holds && at->complete) continue;
      ++lacking;
      in_[to_index(set)] += elements;
    }
    for (const Holding& h : holding.holdings)
      if (h.sole && (needs.size() > 1 || needs.front() != h.set))
        in_complement_[to_index(h.set)] += elements;
    auto needing = static_cast<std::int64_t>(needs.size());
    std::int64_t receipts = reduced_on_the_way_ || holding.packing == 1
                                ? lacking
                                : holding.packing - 1 + needing - (packed_need ? 1 : 0);
    receipts_ += Int128{elements} * receipts;
    return receipts;
  }

  // Prices what `add` counted here: `by_rank` receipts of one element by ranks, `by_set` by sets.
  void add_price(std::size_t holder_list, std::size_t needer_list, std::int64_t elements,
                 std::int64_t by_rank, std::int64_t by_set) {
    if (by_rank == 0) return;
    const std::vector<Holding>& holdings = holdings_[holder_list].holdings;
    std::span<const std::int32_t> needs = needs_.list(needer_list);
    if (holdings.size() == 1 && needs.size() == 1 && holdings.front().set == needs.front()) {
      if (to_index(by_rank) >= price_.alone_bytes.size())
        price_.alone_bytes.resize(to_index(by_rank) + 1, 0);
      price_.alone_bytes[to_index(by_rank)] += elements;
    } else {
      price_.other_receipts_bytes += Int128{elements} * by_rank;
    }
    if (price_.fold_price == 0) return;
    auto needing_ranks = static_cast<std::int64_t>(needers_->list(needer_list).size()),
         needing_sets = static_cast<std::int64_t>(needs.size());
    price_.fold_cost_bytes +=
        Int128{elements} * std::max(needing_ranks + needing_sets * (price_.fold_price - 1),
                                    by_rank + (price_.fold_price - 1) * by_set);
  }

  // In bytes of `width` per element.
  PriceDemand price(std::int64_t width) const {
    PriceDemand out = price_;
    for (Int128& bytes : out.alone_bytes) bytes *= width;
    out.other_receipts_bytes *= width;
    out.fold_cost_bytes *= width;
    return out;
  }
  // Whether the set holds every addend of the list.
  bool complete(std::size_t holder_list, std::int32_t set) const {
    const std::vector<Holding>& holdings = holdings_[holder_list].holdings;
    auto at =
        std::lower_bound(holdings.begin(), holdings.end(), set,
                         [](const Holding& holding, std::int32_t s) { return holding.set < s; });
    return at != holdings.end() && at->set == set && at->complete;
  }
  const std::vector<Int128>& in() const { return in_; }
  const std::vector<Int128>& in_complement() const { return in_complement_; }
  Int128 receipts() const { return receipts_; }

 private:
  std::vector<HoldingList> holdings_;
  NeedLists needs_;
  std::vector<Int128> in_, in_complement_;  // elements per set
  bool reduced_on_the_way_;
  Int128 receipts_ = 0;
  const MemberLists* needers_;
  PriceDemand price_;  // of elements
};

// Calls visit(list of holders, list of needers, elements) for every atom.
template <typename Visit>
void for_each_atom(const Request& request, const MemberLists& holders, const MemberLists& needers,
                   const Visit& visit) {
  Atoms atoms(request);
  auto lists = [](const MemberLists& members) { return static_cast<std::int64_t>(members.size()); };
  Int128 per_atom = Int128{static_cast<std::int64_t>(holders.members.size())} / lists(holders) +
                    static_cast<std::int64_t>(needers.members.size()) / lists(needers) + 1;
  if (per_atom * atoms.count() * holders.kept > kMaxBoundWork)
    throw InputError(fmt::format(
        "request: expected at most 2^33 pairs of shards and holders to bound, found more in {}",
        request.text()));

  std::vector<std::int64_t> zero = zero_coordinates(request);
  atoms.for_each([&](std::int64_t source, std::int64_t destination, std::int64_t elements) {
    for (std::int64_t kept = 0; kept < holders.kept; ++kept)
      visit(to_index(source * holders.kept + kept),
            to_index((destination * holders.kept + kept) * needers.zeros + zero[to_index(source)]),
            elements);
  });
}

// All that is counted of a request in one walk over its atoms: level by level, scope by scope.
class RequestCount {
 public:
  RequestCount(const Request& request, const CutSets& sets)
      : request_(request),
        sets_(sets),
        folds_(request.fold().fold_count > 1),
        holders_(holders_of(request, sets.ranks())),
        needers_(needers_of(request, sets.ranks())),
        latency_(sets.topology(), sets.ranks(), holders_, needers_) {
    for (const CutLevel& level : sets.levels())
      levels_.emplace_back(holders_, needers_, request.fold().fold_count, view_of(level));
    for (std::size_t l = 0; l < sets.levels().size(); ++l)
      if (sets.levels()[l].of_nodes) nodes_ = l;
    if (nodes_) far_.emplace(holders_, needers_, sets.levels()[*nodes_].member_of);
    for (Scopes& scopes : scopes_of(sets))
      held_.emplace_back(holders_, needers_, folds_, std::move(scopes));
  }

  void run() {
    bool by_owner = !folds_ && !JobLatencies(sets_.topology(), sets_.ranks()).alike_within();
    for_each_atom(request_, holders_, needers_,
                  [&](std::size_t holders, std::size_t needers, std::int64_t elements) {
                    std::int64_t by_rank = levels_.front().add(holders, needers, elements);
                    for (std::size_t l = 1; l < levels_.size(); ++l) {
                      std::int64_t by_set = levels_[l].add(holders, needers, elements);
                      levels_[l].add_price(holders, needers, elements, by_rank, by_set);
                    }
                    for (HeldCount& held : held_) held.add(holders, needers, elements);
                    if (far_ && by_rank > 0)
                      far_->add(holders, needers, elements, [&](std::int32_t node) {
                        return levels_[*nodes_].complete(holders, node);
                      });
                    if (by_owner) latency_.add(holders, needers);
                  });
  }

  RequestDemand demand() const {
    RequestDemand demand;
    demand.in_bytes.resize(sets_.size());
    std::int64_t width = size_bytes(request_.dtype());
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      const CutLevel& level = sets_.levels()[l];
      for (std::size_t set = 0; set < level.names.size(); ++set) {
        demand.in_bytes[level.first_set + 2 * set] = levels_[l].in()[set] * width;
        demand.in_bytes[level.first_set + 2 * set + 1] = levels_[l].in_complement()[set] * width;
      }
      demand.receipts_bytes.push_back(levels_[l].receipts() * width);
      demand.prices.push_back(levels_[l].price(width));
    }
    demand.holder_ps = holder_ps(width);
    if (far_)
      demand.entry_ps =
          far_->bound_ps(width, sets_.topology(), sets_.ranks(), sets_.reducing().network);
    demand.owner_latency_ps = owner_latency_ps();
    return demand;
  }

 private:
  LevelView view_of(const CutLevel& level) const {
    Reducing switches = sets_.reducing();
    LevelView view{level.member_of, static_cast<std::int32_t>(level.names.size()),
                   switches.network || (switches.nvlink && !level.of_nodes),
                   request_.fold().fold_count > 2 && !switches.network && !switches.nvlink};
    for (std::int32_t& set : view.set_of)
      if (set < 0) set = view.sets;
    return view;
  }

  // Every level but that of ranks; where the job is on one node, the node.
  static std::vector<Scopes> scopes_of(const CutSets& sets) {
    std::vector<Scopes> out;
    bool several_nodes = false;
    for (std::size_t l = 1; l < sets.levels().size(); ++l) {
      out.push_back({sets.levels()[l].member_of, sets.levels()[l].node});
      several_nodes = several_nodes || sets.levels()[l].of_nodes;
    }
    if (!several_nodes)
      out.push_back({std::vector<std::int32_t>(sets.ranks().size(), 0),
                     {sets.topology().node_of(sets.ranks().front())}});
    return out;
  }

  std::int64_t holder_ps(std::int64_t width) const {
    std::vector<bool> lacks;
    for (std::size_t rank = 0; rank < sets_.ranks().size(); ++rank)
      lacks.push_back(levels_.front().in()[rank] > 0);
    JobCapacities capacities(sets_.topology(), sets_.ranks());
    std::int64_t bound = 0;
    for (const HeldCount& held : held_)
      bound =
          std::max(bound, held.bound_ps(capacities, sets_.topology(), sets_.ranks(), lacks, width));
    return bound;
  }

  // What a node must receive comes from another one.
  std::int64_t owner_latency_ps() const {
    std::int64_t latency = latency_.greatest_ps();
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      const std::vector<Int128>& in = levels_[l].in();
      auto must_receive = [](Int128 elements) { return elements > 0; };
      if (sets_.levels()[l].of_nodes && std::any_of(in.begin(), in.end(), must_receive))
        latency =
            std::max(latency, JobLatencies(sets_.topology(), sets_.ranks()).between_nodes_ps());
    }
    return latency;
  }

  const Request& request_;
  const CutSets& sets_;
  bool folds_;
  MemberLists holders_, needers_;
  OwnerLatency latency_;
  std::vector<LevelCount> levels_;
  std::vector<HeldCount> held_;
  std::optional<std::size_t> nodes_;  // the level of nodes, where there are several
  std::optional<FarCount> far_;       // where there are several nodes
};

}  // namespace

RequestDemand demand_of(const Request& request, const CutSets& sets) {
  if (sets.levels().empty()) return {};
  RequestCount count(request, sets);
  count.run();
  return count.demand();
}

void add_transfer(std::vector<Int128>& in_bytes, const CutSets& sets, Rank source, Rank destination,
                  Int128 bytes) {
  RESHARD_CHECK(in_bytes.size() == sets.size(), "a demand of other sets");
  std::int32_t from = index_in(sets.ranks(), source), to = index_in(sets.ranks(), destination);
  for (const CutLevel& level : sets.levels()) {
    std::int32_t source_set = level.member_of[to_index(from)],
                 destination_set = level.member_of[to_index(to)];
    if (source_set == destination_set) continue;
    // It enters the destination's set, and it leaves the source's.
    if (destination_set >= 0) in_bytes[level.first_set + 2 * to_index(destination_set)] += bytes;
    if (source_set >= 0) in_bytes[level.first_set + 2 * to_index(source_set) + 1] += bytes;
  }
}

std::int64_t least_volume_bytes(const Request& request) {
  LevelView ranks;
  for (std::size_t i = 0; i < request.ranks().size(); ++i)
    ranks.set_of.push_back(static_cast<std::int32_t>(i));
  ranks.sets = static_cast<std::int32_t>(request.ranks().size());
  MemberLists holders = holders_of(request, request.ranks()),
              needers = needers_of(request, request.ranks());
  LevelCount count(holders, needers, request.fold().fold_count, ranks);
  for_each_atom(request, holders, needers,
                [&](std::size_t holder_list, std::size_t needer_list, std::int64_t elements) {
                  count.add(holder_list, needer_list, elements);
                });
  Int128 bytes = count.receipts() * size_bytes(request.dtype());
  return static_cast<std::int64_t>(
      std::min<Int128>(bytes, std::numeric_limits<std::int64_t>::max()));
}

}  // namespace reshard
