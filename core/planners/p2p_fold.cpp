// SPDX-License-Identifier: BSD-3-Clause
// p2p with Partial sources. Every element has one owner. Phase 1 sends the owner the addends that
// it does not hold; the owner folds the addends in ascending order; phase 2 sends the result to the
// other ranks that need it. With k addends and m needing ranks that is (k-1)+(m-1) receipts if the
// owner holds an addend and needs the result, else k+m-1: the fewest possible.
//
// All elements of an item (items.h) have the same holders and the same needing ranks. Owners are
// the needing ranks that hold an addend; if none does, the holders if there are no more results
// than addends (m <= k), else the needing ranks. The item is divided evenly among them, so that
// folding and sending are spread.
#include <algorithm>

#include <fmt/format.h>

#include "core/moves/items.h"
#include "core/planners/p2p_parts.h"

namespace reshard {
namespace {

class FoldPlanner {
 public:
  FoldPlanner(Crossing& crossing, const Topology* topology)
      : crossing_(crossing),
        addends_(crossing.dims(), crossing.plan.slot_count()),
        results_(crossing.dims(), crossing.plan.slot_count()),
        senders_(crossing, topology),
        owned_(crossing.plan.slot_count(), 0),
        folds_(crossing.plan.slot_count()),
        temporaries_(crossing.plan.slot_count(), 0),
        places_(crossing.plan.slot_count(), 0) {
    // A rank in both meshes has its place in the source's.
    std::int32_t place = static_cast<std::int32_t>(crossing.source_slot.size());
    for (Slot slot : crossing.destination_slot) places_[to_index(slot)] = place++;
    place = 0;
    for (Slot slot : crossing.source_slot) places_[to_index(slot)] = place++;
  }

  void run(Explanation* explanation) {
    Items(crossing_).for_each([&](const Item& item) { plan_item(item); });
    add_steps(explanation);
  }

 private:
  using Fold = std::pair<ReduceStep::SlotFold, std::vector<ReduceStep::Operand>>;

  // The addend of the item that `slot` holds, if any.
  std::optional<std::int64_t> held_addend(const Item& item, Slot slot) const {
    const std::optional<Crossing::Standing>& standing = crossing_.standing(slot);
    if (!standing || standing->base != item.source_base) return std::nullopt;
    bool wanted = std::binary_search(item.addends->begin(), item.addends->end(), standing->addend);
    return wanted ? std::optional(standing->addend) : std::nullopt;
  }

  std::vector<Slot> owners_of(const Item& item) const {
    std::vector<Slot> owners;
    for (Slot slot : item.needing)
      if (held_addend(item, slot)) owners.push_back(slot);
    if (owners.empty() && item.needing.size() <= item.addends->size()) {
      for (std::int64_t addend : *item.addends)
        for (std::int32_t replica : crossing_.source_cells.replica_offsets())
          owners.push_back(
              crossing_.source_slot[to_index(item.source_base + addend_offset(addend) + replica)]);
    }
    if (owners.empty()) owners = item.needing;
    auto load = [&](Slot slot) {
      return std::pair(owned_[to_index(slot)], places_[to_index(slot)]);
    };
    std::sort(owners.begin(), owners.end(), [&](Slot a, Slot b) { return load(a) < load(b); });
    return owners;
  }
  std::int32_t addend_offset(std::int64_t addend) const {
    return crossing_.source_cells.addend_offsets()[to_index(addend)];
  }

  void plan_item(const Item& item) {
    std::vector<Slot> owners = owners_of(item);
    divide(item, box_of(item.extents()), owners);
  }

  // Divides `box` (packed coordinates of the item) among the owners, along its longest dims.
  void divide(const Item& item, const Box& box, std::span<const Slot> owners) {
    int longest = 0;
    for (int d = 1; d < box.dims(); ++d)
      if (box.extent(d) > box.extent(longest)) longest = d;
    std::int64_t extent = box.extent(longest), count = static_cast<std::int64_t>(owners.size()),
                 parts = std::min(extent, count);
    if (parts == 1) return own(item, box, owners[0]);
    for (std::int64_t i = 0; i < parts; ++i) {
      Box part = box;
      part.lo[longest] = box.lo[longest] + extent * i / parts;
      part.hi[longest] = box.lo[longest] + extent * (i + 1) / parts;
      std::int64_t first = count * i / parts, last = count * (i + 1) / parts;
      divide(item, part, owners.subspan(to_index(first), to_index(last - first)));
    }
  }

  BufferId add_temporary(Slot slot, const Shape& shape) {
    std::int32_t id = 2 + temporaries_[to_index(slot)]++;
    while (static_cast<std::int32_t>(crossing_.plan.buffers.size()) <= id)
      crossing_.plan.add_temporary();
    crossing_.plan.buffer(BufferId{id}).set_shape(slot, shape);
    return BufferId{id};
  }

  // Plans that `owner` folds `box`: addends to it, the fold, results from it. Arriving addends are
  // stacked along dim 0 of one temporary.
  void own(const Item& item, const Box& box, Slot owner) {
    std::optional<std::int64_t> held = held_addend(item, owner);
    std::vector<std::int64_t> arriving;
    for (std::int64_t addend : *item.addends)
      if (addend != held) arriving.push_back(addend);
    owned_[to_index(owner)] += box.volume();

    Shape stacked = box.extents();
    std::int64_t block = stacked[0];
    stacked[0] *= static_cast<std::int64_t>(arriving.size());
    BufferId landing = add_temporary(owner, stacked);
    bool owner_needs = std::binary_search(item.needing.begin(), item.needing.end(), owner);
    BufferId result = owner_needs ? kDestinationBuffer : add_temporary(owner, box.extents());

    std::vector<Slot> senders;
    for (std::int64_t addend : arriving)
      senders.push_back(senders_.pick(item.source_base + addend_offset(addend), box.volume()));
    for_each_fragment(
        crossing_, item, box,
        [&](const DimVector& source_lo, const DimVector& destination_lo, const DimVector& packed_lo,
            const DimVector& extents) {
          const DimVector& result_lo = owner_needs ? destination_lo : packed_lo;
          Fold& fold = folds_[to_index(owner)].emplace_back(
              ReduceStep::SlotFold{owner, result, result_lo, extents, 0, 0},
              std::vector<ReduceStep::Operand>{});
          std::size_t next = 0;
          for (std::int64_t addend : *item.addends) {
            if (addend == held) {
              fold.second.push_back({kSourceBuffer, source_lo});
              continue;
            }
            DimVector lo = packed_lo;
            lo[0] += static_cast<std::int64_t>(next) * block;
            addends_.add(senders[next++], owner, {kSourceBuffer, landing, source_lo, lo, extents});
            fold.second.push_back({landing, lo});
          }
          for (Slot slot : item.needing)
            if (slot != owner)
              results_.add(owner, slot,
                           {result, kDestinationBuffer, result_lo, destination_lo, extents});
        });
  }

  void add_steps(Explanation* explanation) {
    Plan& plan = crossing_.plan;
    if (addends_.empty()) return;
    StepId sending = plan.add_step(addends_.take(), {});
    ReduceStep reduce;
    reduce.op = crossing_.request.fold().op;
    reduce.divisor = crossing_.request.fold().divisor;
    for (std::vector<Fold>& folds : folds_)
      for (Fold& fold : folds) {
        fold.first.first_operand = static_cast<std::uint32_t>(reduce.operands.size());
        fold.first.operand_count = static_cast<std::uint32_t>(fold.second.size());
        reduce.parts.push_back(fold.first);
        reduce.operands.insert(reduce.operands.end(), fold.second.begin(), fold.second.end());
      }
    StepId folding = plan.add_step(std::move(reduce), {sending});
    if (explanation) {
      explanation->add(sending,
                       "phase 1: addends go to one owner per element, if possible a rank that "
                       "needs the result and holds an addend");
      explanation->add(folding, "the owner folds the addends in ascending order");
    }
    if (results_.empty()) return;
    StepId spreading = plan.add_step(results_.take(), {folding});
    if (explanation)
      explanation->add(spreading, "phase 2: results go to the other ranks that need them");
  }

  Crossing& crossing_;
  MessageSorter addends_, results_;
  Senders senders_;
  std::vector<std::int64_t> owned_;        // elements that each slot folds so far
  std::vector<std::vector<Fold>> folds_;   // per slot
  std::vector<std::int32_t> temporaries_;  // used so far, per slot
  std::vector<std::int32_t> places_;       // per slot: the order of owners of equal load
};

}  // namespace

void plan_folds(Crossing& crossing, const PlannerInput& input) {
  FoldPlanner(crossing, input.topology).run(input.explanation);
}

}  // namespace reshard
