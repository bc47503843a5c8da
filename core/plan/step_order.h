// SPDX-License-Identifier: BSD-3-Clause
// Which steps a rank's part of a step is ordered after. Dependencies hold per rank, so the answer depends on the steps in which the rank takes part; ranks that take
// part in the same steps share one table.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"

namespace reshard {

class StepOrder {
 public:
  // Every step's `after` must name earlier steps only.
  explicit StepOrder(const Plan& plan);

  // Whether `slot` starts its part of `step` only when its part of `earlier` is done. False where it has no part in either.
  bool ordered(Slot slot, std::int32_t earlier, std::int32_t step) const;

 private:
  using Bits = std::vector<std::uint64_t>;
  std::size_t words_;
  std::vector<std::int32_t> class_of_;        // per slot
  std::vector<std::vector<Bits>> ancestors_;  // per class, per step; empty bits where the class has no part
};

}  // namespace reshard
