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
#include "core/planners/p2p_fold.h"

#include <algorithm>
#include <tuple>

namespace reshard {

FoldPlanner::FoldPlanner(Plan& plan, const Demand& demand, Senders& senders, MessageSorter& addends,
                         MessageSorter& results)
    : plan_(plan),
      demand_(demand),
      senders_(senders),
      addends_(addends),
      results_(results),
      owned_(plan.slot_count(), 0),
      used_(plan.slot_count(), 0) {}

void FoldPlanner::plan_tensor(std::size_t kind, TensorId tensor) {
  kind_number_ = kind;
  kind_ = &demand_.kinds()[kind];
  tensor_ = tensor;
  temporaries_.clear();
  std::fill(used_.begin(), used_.end(), 0);
  const FoldMeaning& fold = kind_->request().fold();
  tensor_folds_ = &folds_[{fold.op, fold.divisor}];
  tensor_folds_->resize(plan_.slot_count());
  Items(*kind_).for_each([&](const Item& item) {
    std::vector<Slot> owners = owners_of(item);
    divide(item, box_of(item.extents(plan_.dims())), owners);
  });
}

std::vector<Slot> FoldPlanner::owners_of(const Item& item) const {
  std::vector<Slot> owners;
  for (Slot slot : item.needing)
    if (held_addend(*kind_, item, slot)) owners.push_back(slot);
  if (owners.empty() && item.needing.size() <= item.addends->size()) {
    for (std::int64_t addend : *item.addends) {
      HolderSet set = kind_->holder_set(item.source, addend);
      for (std::size_t i = 0; i < kind_->holder_count(set); ++i)
        owners.push_back(kind_->source_slot[to_index(kind_->holder(set, i))]);
    }
  }
  if (owners.empty()) owners = item.needing;
  auto load = [&](Slot slot) {
    return std::pair(owned_[to_index(slot)], demand_.place_of()[to_index(slot)]);
  };
  std::sort(owners.begin(), owners.end(), [&](Slot a, Slot b) { return load(a) < load(b); });
  return owners;
}

// Divides `box` (packed coordinates of the item) among the owners, along its longest dims.
void FoldPlanner::divide(const Item& item, const Box& box, std::span<const Slot> owners) {
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

// The slot's next temporary of the tensor.
BufferId FoldPlanner::add_temporary(Slot slot, const Shape& shape) {
  std::size_t number = used_[to_index(slot)]++;
  if (number == temporaries_.size()) temporaries_.push_back(plan_.add_temporary(tensor_));
  plan_.buffer(temporaries_[number]).set_shape(slot, shape);
  return temporaries_[number];
}

// Plans that `owner` folds `box`: addends to it, the fold, results from it. Arriving addends are
// stacked along the tensor's first dim in one temporary.
void FoldPlanner::own(const Item& item, const Box& box, Slot owner) {
  std::optional<std::int64_t> held = held_addend(*kind_, item, owner);
  std::vector<std::int64_t> arriving;
  for (std::int64_t addend : *item.addends)
    if (addend != held) arriving.push_back(addend);
  std::int64_t bytes = box.volume() * kind_->element_bytes();
  owned_[to_index(owner)] += bytes;

  Shape stacked = box.extents();
  const int first_dim = stacked.size() - kind_->dims();
  std::int64_t block = stacked[first_dim];
  stacked[first_dim] *= static_cast<std::int64_t>(arriving.size());
  BufferId landing = add_temporary(owner, stacked), destination = destination_of(tensor_);
  bool owner_needs = std::binary_search(item.needing.begin(), item.needing.end(), owner);
  BufferId result = owner_needs ? destination : add_temporary(owner, box.extents());

  std::vector<Slot> from;
  for (std::int64_t addend : arriving)
    from.push_back(senders_.pick({kind_number_, kind_->holder_set(item.source, addend)}, bytes));
  for_each_fragment(
      *kind_, item, box,
      [&](const DimVector& source_lo, const DimVector& destination_lo, const DimVector& packed_lo,
          const DimVector& extents) {
        DimVector result_lo = owner_needs ? in_destination(item, owner, destination_lo) : packed_lo;
        Fold& fold = (*tensor_folds_)[to_index(owner)].emplace_back(
            ReduceStep::SlotFold{owner, result, result_lo, extents, 0, 0},
            std::vector<ReduceStep::Operand>{});
        std::size_t next = 0;
        for (std::int64_t addend : *item.addends) {
          if (addend == held) {
            fold.second.push_back({source_of(tensor_), in_source(item, owner, source_lo)});
            continue;
          }
          DimVector lo = packed_lo;
          lo[first_dim] += static_cast<std::int64_t>(next) * block;
          Slot sender = from[next++];
          addends_.add(
              sender, owner,
              {source_of(tensor_), landing, in_source(item, sender, source_lo), lo, extents});
          fold.second.push_back({landing, lo});
        }
        for (Slot slot : item.needing)
          if (slot != owner)
            results_.add(owner, slot,
                         {result, destination, result_lo,
                          in_destination(item, slot, destination_lo), extents});
      });
}

std::vector<ReduceStep> FoldPlanner::take_folds() {
  std::vector<ReduceStep> out;
  for (auto& [meaning, by_slot] : folds_) {
    ReduceStep reduce;
    std::tie(reduce.op, reduce.divisor) = meaning;
    for (std::vector<Fold>& folds : by_slot)
      for (Fold& fold : folds) {
        fold.first.first_operand = static_cast<std::uint32_t>(reduce.operands.size());
        fold.first.operand_count = static_cast<std::uint32_t>(fold.second.size());
        reduce.parts.push_back(fold.first);
        reduce.operands.insert(reduce.operands.end(), fold.second.begin(), fold.second.end());
      }
    if (!reduce.parts.empty()) out.push_back(std::move(reduce));
  }
  folds_.clear();
  return out;
}

}  // namespace reshard
