// SPDX-License-Identifier: BSD-3-Clause
#include "core/packing/packed_request.h"

#include <algorithm>
#include <numeric>

namespace reshard {
namespace {

// The source's ranks by position, then those that only the destination has.
std::vector<Rank> ranks_of(const Request& request) {
  std::vector<Rank> out = request.source().mesh().ranks();
  for (Rank rank : request.destination().mesh().ranks())
    if (!request.source().mesh().position_of(rank)) out.push_back(rank);
  return out;
}

// `places`: by the plan's slot.
Commodity commodity_of(const Crossing& crossing, const Item& item,
                       const std::vector<Slot>& places) {
  Commodity out{item.source_base,
                item.need,
                element_count(item.extents()) * size_bytes(crossing.request.dtype()),
                {},
                {}};
  for (std::int64_t addend : *item.addends) {
    std::vector<Slot>& holders = out.holders.emplace_back();
    std::int32_t first =
        item.source_base + crossing.source_cells.addend_offsets()[to_index(addend)];
    for (std::int32_t replica : crossing.source_cells.replica_offsets())
      holders.push_back(places[to_index(crossing.source_slot[to_index(first + replica)])]);
    std::sort(holders.begin(), holders.end());
  }
  for (Slot slot : item.needing) {
    Slot place = places[to_index(slot)];
    if (out.folds() || !std::binary_search(out.holders[0].begin(), out.holders[0].end(), place))
      out.needers.push_back(place);
  }
  std::sort(out.needers.begin(), out.needers.end());
  return out;
}

// `list` rearranged so that entry i is list[order[i]].
template <class T>
std::vector<T> ordered(std::vector<T> list, const std::vector<std::size_t>& order) {
  std::vector<T> out;
  out.reserve(list.size());
  for (std::size_t i : order) out.push_back(std::move(list[i]));
  return out;
}

}  // namespace

PackedRequest::PackedRequest(const Crossing& crossing, const Topology& topology)
    : ranks(ranks_of(crossing.request)), all(crossing) {
  std::vector<Slot> places(ranks.size());
  for (Rank rank : ranks) {
    Slot slot = crossing.plan.slot_of(rank);
    places[to_index(slot)] = static_cast<Slot>(plan_slot.size());
    plan_slot.push_back(slot);
  }
  commodities.needed_to.assign(ranks.size(), -1);
  for (Slot slot : plan_slot) {
    const auto& standing = crossing.standing(slot);
    commodities.held_from.push_back(standing ? standing->base : -1);
  }
  std::vector<Commodity>& list = commodities.list;
  all.for_each([&](const Item& item) {
    for (Slot slot : item.needing)
      commodities.needed_to[to_index(places[to_index(slot)])] = item.need;
    Commodity commodity = commodity_of(crossing, item, places);
    if (commodity.needers.empty()) return;
    list.push_back(std::move(commodity));
    items.push_back(item);
  });
  std::vector<std::size_t> order(list.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(list[a].from, list[a].to) < std::pair(list[b].from, list[b].to);
  });
  list = ordered(std::move(list), order);
  items = ordered(std::move(items), order);
  symmetry = Symmetry(crossing.request, ranks, topology, commodities);
}

}  // namespace reshard
