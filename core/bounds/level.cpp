// SPDX-License-Identifier: BSD-3-Clause
#include "core/bounds/level.h"

#include <algorithm>
#include <utility>

namespace reshard {
namespace {

struct HoldingList {
  std::vector<Holding> holdings;
  std::int64_t packing = 0;
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

  // Ranges of `held`, one per addend: (number of holders, begin).
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

}  // namespace

HoldingLists::HoldingLists(const MemberLists& holders, std::int64_t addends,
                           const LevelView& level) {
  begins_.reserve(holders.begins.size());
  packing_.reserve(holders.size());
  for (std::size_t i = 0; i < holders.size(); ++i) {
    if (std::span<const Member> members = holders.list(i); members.size() == 1) {
      // The usual case: nothing is replicated.
      all_.push_back({level.set_of[to_index(members[0].rank)], addends == 1, true, true});
      packing_.push_back(1);
    } else {
      HoldingList list = holding_list(members, addends, level);
      all_.insert(all_.end(), list.holdings.begin(), list.holdings.end());
      packing_.push_back(list.packing);
    }
    begins_.push_back(all_.size());
  }
}

LevelCount::LevelCount(const MemberLists& holders, const MemberLists& needers, std::int64_t addends,
                       const LevelView& level)
    : holdings_(holders, addends, level),
      in_(to_index(level.sets) + 1),
      in_complement_(in_),
      reduced_in_transit_(level.reduced_in_transit),
      needers_(&needers) {
  if (level.has_fold_price) price_.fold_price = addends - 1;
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

void LevelCount::add_price(std::size_t holder_list, std::size_t needer_list, std::int64_t elements,
                           std::int64_t by_rank, std::int64_t by_set) {
  if (by_rank == 0) return;
  std::span<const Holding> holdings = holdings_.list(holder_list);
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

PriceDemand LevelCount::price(std::int64_t width) const {
  PriceDemand out = price_;
  for (Int128& bytes : out.alone_bytes) bytes *= width;
  out.other_receipts_bytes *= width;
  out.fold_cost_bytes *= width;
  return out;
}

bool LevelCount::complete(std::size_t holder_list, std::int32_t set) const {
  std::span<const Holding> holdings = holdings_.list(holder_list);
  auto at =
      std::lower_bound(holdings.begin(), holdings.end(), set,
                       [](const Holding& holding, std::int32_t s) { return holding.set < s; });
  return at != holdings.end() && at->set == set && at->complete;
}

}  // namespace reshard
