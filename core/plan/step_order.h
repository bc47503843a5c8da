// SPDX-License-Identifier: BSD-3-Clause
// Which steps a rank's part of a step is ordered after. Dependencies hold per rank, so this depends
// on the steps in which the rank takes part. Ranks that take part in the same steps share one
// table, over those steps only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/plan/plan.h"

namespace reshard {

class StepOrder {
 public:
  // Every step's `after` must name earlier steps only. Throws InputError where the tables would
  // take more than 1 GiB: some 90,000 steps on one rank.
  explicit StepOrder(const Plan& plan);

  // Whether `slot` starts its part of `step` only when its part of `earlier` is done. False where
  // it has no part in one of them.
  bool ordered(Slot slot, std::int32_t earlier, std::int32_t step) const;

  // Whether the rank starts each of its steps only when those listed before it are done.
  bool in_turn(Slot slot) const { return tables_[to_index(class_of(slot))].in_turn; }

  // Two steps in which the slot has a part: `earlier` belongs to an earlier stage than `later`, but
  // the slot could start `later` before `earlier` is done. None if the plan's stages follow one
  // another on every rank.
  struct OutOfTurn {
    Slot slot;
    std::int32_t earlier, later;
  };
  std::optional<OutOfTurn> out_of_turn(const Plan& plan) const;

  // Equal for ranks with the same ordering: those with a part in the same steps. 0 .. classes()-1.
  std::int32_t class_of(Slot slot) const { return class_of_[to_index(slot)]; }
  std::int32_t classes() const { return static_cast<std::int32_t>(tables_.size()); }
  // The steps in which the ranks of a class have a part, ascending.
  const std::vector<std::int32_t>& steps_of(std::int32_t rank_class) const {
    return tables_[to_index(rank_class)].steps;
  }
  // `ordered` for the ranks of a class.
  bool class_ordered(std::int32_t rank_class, std::int32_t earlier, std::int32_t step) const;
  // Whether everything that `one` waits for and that is `counted` (by step) is done before `step`
  // starts, on the ranks of a class, which must have a part in both.
  bool waits_for_as_much(std::int32_t rank_class, std::int32_t one, std::int32_t step,
                         const std::vector<bool>& counted) const;

 private:
  using Bits = std::vector<std::uint64_t>;
  struct Table {
    std::vector<std::int32_t> steps;  // that the ranks of the class take part in, ascending
    std::vector<Bits> ancestors;      // a bit set over indices of `steps`, for each
    bool in_turn = true;              // each has the one before among its ancestors
  };
  static Table table_of(const Plan& plan, const std::vector<std::int32_t>& steps);
  static std::optional<OutOfTurn> out_of_turn(const Plan& plan, const Table& table,
                                              const IndexVector<StepId, std::int32_t>& stage_of);

  std::vector<std::int32_t> class_of_;  // per slot
  std::vector<Table> tables_;           // per class
};

}  // namespace reshard
