// SPDX-License-Identifier: BSD-3-Clause
// The half of p2p that folds Partial sources (p2p_fold.cpp).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/demand/items.h"
#include "core/moves/messages.h"
#include "core/plan/plan.h"
#include "core/planners/senders.h"

namespace reshard {

class FoldPlanner {
 public:
  // Adds temporaries to `plan`, and messages to `addends` and `results`. Keeps references.
  FoldPlanner(Plan& plan, const Demand& demand, Senders& senders, MessageSorter& addends,
              MessageSorter& results);

  // Plans a tensor of a kind that folds.
  void plan_tensor(std::size_t kind, TensorId tensor);
  // The folds between addends and results, one step for each operator and divisor.
  std::vector<ReduceStep> take_folds();

 private:
  using Fold = std::pair<ReduceStep::SlotFold, std::vector<ReduceStep::Operand>>;

  std::vector<Slot> owners_of(const Item& item) const;
  void divide(const Item& item, const Box& box, std::span<const Slot> owners);
  void own(const Item& item, const Box& box, Slot owner);
  BufferId add_temporary(Slot slot, const Shape& shape);

  Plan& plan_;
  const Demand& demand_;
  Senders& senders_;
  MessageSorter &addends_, &results_;
  std::vector<std::int64_t> owned_;  // bytes that each slot folds so far
  // By operator and divisor: the folds of every slot.
  std::map<std::pair<ReduceOp, std::int64_t>, std::vector<std::vector<Fold>>> folds_;
  // For the tensor that is being planned:
  std::size_t kind_number_ = 0;
  const TensorKind* kind_ = nullptr;
  TensorId tensor_{};
  std::vector<std::vector<Fold>>* tensor_folds_ = nullptr;
  std::vector<BufferId> temporaries_;  // its temporaries
  std::vector<std::size_t> used_;      // how many of them each slot has
};

}  // namespace reshard
