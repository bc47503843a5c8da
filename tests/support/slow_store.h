// SPDX-License-Identifier: BSD-3-Clause
// A second store, element by element: every box is walked index by index, and every fold uses the
// oracle's arithmetic. Slow and obvious, for data on which the order of operations has an effect.
// It frees nothing and shares nothing.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/plan/executor.h"

namespace reshard::test {

class SlowStore : public Executor {
 public:
  std::string_view name() const override { return "slow"; }
  // One prepared plan at a time.
  std::unique_ptr<PreparedPlan> prepare(const Plan& plan) override;

 private:
  friend class PreparedSlowStore;
  using Elements = std::vector<std::uint64_t>;  // bits, row-major

  Elements& elements(BufferId buffer, Slot slot) { return memory_[{buffer, slot}]; }
  void run_step(const CopyStep& step);
  void run_step(const FillStep& step);
  void run_step(const ExchangeStep& step);
  void run_step(const CollectiveStep& step);
  void run_step(const ReduceStep& step);
  void move(const Move& move, Slot source, Slot destination);

  const Plan* plan_ = nullptr;
  std::map<std::pair<BufferId, Slot>, Elements> memory_;
};

}  // namespace reshard::test
