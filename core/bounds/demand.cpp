// SPDX-License-Identifier: BSD-3-Clause
// In(X) and the least receipts, level by level.
//
// At one level (single ranks, nodes, ...) a list of holders becomes a short list of sets, each with
// three facts about the addends: does the set hold all of them, is it the only holder of one, does
// it hold one of the packed ones. A list of needers becomes a list of sets. Both are worked out
// once per list; an atom then merges two short lists:
//
//   X must receive                 X needs, and does not hold all addends
//   the complement of X must       another set needs, and X is the only holder of some addend
//   receipts                       see bounds.h
#include <algorithm>
#include <limits>
#include <span>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/base/limits.h"
#include "core/bounds/atoms.h"
#include "core/bounds/bounds.h"

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
        reduced_on_the_way_(level.reduced_on_the_way) {
    for (std::size_t i = 0; i + 1 < holders.begins.size(); ++i)
      holdings_.push_back(
          holding_list(std::span(holders.members)
                           .subspan(holders.begins[i], holders.begins[i + 1] - holders.begins[i]),
                       addends, level));
    for (std::size_t i = 0; i + 1 < needers.begins.size(); ++i) {
      std::size_t first = needs_.sets.size();
      for (std::size_t m = needers.begins[i]; m < needers.begins[i + 1]; ++m)
        needs_.sets.push_back(level.set_of[to_index(needers.members[m].rank)]);
      auto begin = needs_.sets.begin() + static_cast<std::ptrdiff_t>(first);
      std::sort(begin, needs_.sets.end());
      needs_.sets.erase(std::unique(begin, needs_.sets.end()), needs_.sets.end());
      needs_.begins.push_back(needs_.sets.size());
    }
  }

  void add(std::size_t holder_list, std::size_t needer_list, std::int64_t elements) {
    const HoldingList& holding = holdings_[holder_list];
    std::span<const std::int32_t> needs = needs_.list(needer_list);
    if (needs.empty()) return;
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
};

// Counts all levels in one walk over the atoms.
std::vector<LevelCount> count_levels(const Request& request, const std::vector<Rank>& job,
                                     const std::vector<LevelView>& levels) {
  MemberLists holders = holders_of(request, job), needers = needers_of(request, job);
  Atoms atoms(request);
  auto lists = [](const MemberLists& members) {
    return static_cast<std::int64_t>(members.begins.size()) - 1;
  };
  Int128 per_atom = Int128{static_cast<std::int64_t>(holders.members.size())} / lists(holders) +
                    static_cast<std::int64_t>(needers.members.size()) / lists(needers) + 1;
  if (per_atom * atoms.count() * holders.kept > kMaxBoundWork)
    throw InputError(fmt::format(
        "request: expected at most 2^33 pairs of shards and holders to bound, found more in {}",
        request.text()));

  std::vector<LevelCount> counts;
  for (const LevelView& level : levels)
    counts.emplace_back(holders, needers, request.fold().fold_count, level);
  std::vector<std::int64_t> zero = zero_coordinates(request);
  atoms.for_each([&](std::int64_t source, std::int64_t destination, std::int64_t elements) {
    for (LevelCount& count : counts)
      for (std::int64_t kept = 0; kept < holders.kept; ++kept)
        count.add(
            to_index(source * holders.kept + kept),
            to_index((destination * holders.kept + kept) * needers.zeros + zero[to_index(source)]),
            elements);
  });
  return counts;
}

LevelView view_of(const CutLevel& level, const Machine& machine) {
  LevelView view{level.member_of, static_cast<std::int32_t>(level.names.size()),
                 machine.sharp || (machine.nvls && !level.of_nodes)};
  for (std::int32_t& set : view.set_of)
    if (set < 0) set = view.sets;
  return view;
}

}  // namespace

RequestDemand demand_of(const Request& request, const CutSets& sets) {
  RequestDemand demand;
  demand.in_bytes.assign(sets.size(), 0);
  std::vector<LevelView> views;
  for (const CutLevel& level : sets.levels())
    views.push_back(view_of(level, sets.topology().machine()));
  if (views.empty()) return demand;
  std::vector<LevelCount> counts = count_levels(request, sets.ranks(), views);
  Int128 width = size_bytes(request.dtype());
  for (std::size_t l = 0; l < counts.size(); ++l) {
    const CutLevel& level = sets.levels()[l];
    for (std::size_t set = 0; set < level.names.size(); ++set) {
      demand.in_bytes[level.first_set + 2 * set] = counts[l].in()[set] * width;
      demand.in_bytes[level.first_set + 2 * set + 1] = counts[l].in_complement()[set] * width;
    }
    demand.receipts_bytes.push_back(counts[l].receipts() * width);
  }
  return demand;
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
  Int128 bytes = count_levels(request, request.ranks(), {ranks}).front().receipts() *
                 size_bytes(request.dtype());
  return static_cast<std::int64_t>(
      std::min<Int128>(bytes, std::numeric_limits<std::int64_t>::max()));
}

}  // namespace reshard
