// SPDX-License-Identifier: BSD-3-Clause
#include "core/packing/steps/own_data.h"

#include <map>
#include <utility>

#include "core/demand/items.h"
#include "core/moves/messages.h"

namespace reshard {
namespace {

class OwnData {
 public:
  OwnData(const Plan& plan, const Demand& demand)
      : demand_(demand), copies_(plan.dims(), plan.slot_count()) {}

  void collect() {
    for (const TensorKind& kind : demand_.kinds())
      Items(kind).for_each([&](const Item& item) {
        if (item.addends->size() > 1) return;
        for (Slot slot : item.needing)
          if (held_addend(kind, item, slot)) keep(kind, item, slot);
      });
  }

  CopyStep copies() { return copies_.take(); }
  bool has_copies() const { return !copies_.empty(); }
  std::map<std::int64_t, ReduceStep>& divisions() { return divisions_; }  // by divisor

 private:
  void keep(const TensorKind& kind, const Item& item, Slot slot) {
    std::int64_t divisor = kind.request().fold().divisor;
    auto keep_box = [&](const DimVector& item_source_lo, const DimVector& item_destination_lo,
                        const DimVector&, const DimVector& extents) {
      DimVector source_lo = in_source(item, slot, item_source_lo),
                destination_lo = in_destination(item, slot, item_destination_lo);
      for (TensorId tensor : kind.tensors) {
        BufferId source = source_of(tensor), destination = destination_of(tensor);
        if (divisor == 1) {
          copies_.add(slot, {source, destination, source_lo, destination_lo, extents});
          continue;
        }
        ReduceStep& divide = divisions_[divisor];
        divide.divisor = divisor;
        divide.parts.push_back({slot, destination, destination_lo, extents,
                                static_cast<std::uint32_t>(divide.operands.size()), 1});
        divide.operands.push_back({source, source_lo});
      }
    };
    for_each_fragment(kind, item, box_of(item.extents(demand_.dims())), keep_box);
  }

  const Demand& demand_;
  LocalMoves copies_;
  std::map<std::int64_t, ReduceStep> divisions_;
};

}  // namespace

void keep_own(Plan& plan, const Demand& demand,
              const std::function<void(StepId, std::string)>& say) {
  OwnData own(plan, demand);
  own.collect();
  if (own.has_copies())
    say(plan.add_step(own.copies(), {}), "each rank copies what it already holds");
  for (auto& [divisor, divide] : own.divisions()) {
    sort_parts(divide);
    say(plan.add_step(std::move(divide), {}),
        "R -> P(sum) divides by the axis size; each rank first divides what it already holds");
  }
}

}  // namespace reshard
