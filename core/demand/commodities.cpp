// SPDX-License-Identifier: BSD-3-Clause
#include "core/demand/commodities.h"

#include <algorithm>
#include <utility>

namespace reshard {
namespace {

// Who holds and who needs an item, without its parts.
Commodity ends_of(const Demand& demand, const TensorKind& kind, const Item& item) {
  const FoldMeaning& fold = kind.request().fold();
  Commodity out{0, {}, {}, fold.op, fold.divisor, {}};
  auto place = [&](Slot slot) { return demand.place_of()[to_index(slot)]; };
  for (std::int64_t addend : *item.addends) {
    std::vector<Slot>& holders = out.holders.emplace_back();
    HolderSet set = kind.holder_set(item.source, addend);
    for (std::size_t i = 0; i < kind.holder_count(set); ++i)
      holders.push_back(place(kind.source_slot[to_index(kind.holder(set, i))]));
    std::sort(holders.begin(), holders.end());
  }
  std::sort(out.holders.begin(), out.holders.end());
  for (Slot slot : item.needing) {
    const std::vector<Slot>& whole = out.holders[0];
    if (out.folds() || !std::binary_search(whole.begin(), whole.end(), place(slot)))
      out.needers.push_back(place(slot));
  }
  std::sort(out.needers.begin(), out.needers.end());
  return out;
}

}  // namespace

Commodities::Commodities(const Demand& demand) : demand_(&demand), items_(demand.kinds().size()) {
  for (Slot slot : demand.slot_at()) ranks_.push_back(demand.ranks()[to_index(slot)]);
  for (std::size_t kind = 0; kind < items_.size(); ++kind) add(static_cast<std::int32_t>(kind));
  for (Commodity& commodity : list_) {
    std::stable_sort(commodity.parts.begin(), commodity.parts.end(),
                     [](const auto& a, const auto& b) { return a.tensor < b.tensor; });
    for (CommodityPart& part : commodity.parts) part.end = commodity.bytes += bytes(part);
  }
}

// New commodities are listed by the source cell that they are cut from, then by the destination
// cell.
void Commodities::add(std::int32_t number) {
  const TensorKind& kind = demand_->kinds()[to_index(number)];
  std::vector<Item>& items = items_[to_index(number)];
  std::vector<std::pair<Commodity, std::int32_t>> found;
  Items(kind).for_each([&](const Item& item) {
    Commodity ends = ends_of(*demand_, kind, item);
    if (ends.needers.empty()) return;
    found.emplace_back(std::move(ends), static_cast<std::int32_t>(items.size()));
    items.push_back(item);
  });
  std::sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
    auto cells = [&](const auto& of) {
      const Item& item = items[to_index(of.second)];
      return std::pair(item.source, item.need);
    };
    return cells(a) < cells(b);
  });
  for (auto& [ends, item] : found) {
    auto [at, is_new] = numbers_.try_emplace({ends.holders, ends.needers, ends.op, ends.divisor},
                                             static_cast<std::int32_t>(list_.size()));
    if (is_new) list_.push_back(std::move(ends));
    Commodity& commodity = list_[to_index(at->second)];
    for (TensorId tensor : kind.tensors) commodity.parts.push_back({tensor, number, item, 0});
  }
}

std::optional<std::int32_t> Commodities::find(std::vector<std::vector<Slot>> holders,
                                              std::vector<Slot> needers,
                                              const Commodity& like) const {
  auto at = numbers_.find({std::move(holders), std::move(needers), like.op, like.divisor});
  return at == numbers_.end() ? std::nullopt : std::optional(at->second);
}

}  // namespace reshard
