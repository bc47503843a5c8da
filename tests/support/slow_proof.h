// SPDX-License-Identifier: BSD-3-Clause
// A second proof, element by element: runs the plan with one symbolic value per element of every
// buffer (which element of the tensor, the set of addends, the divisor), over memory that is
// poisoned per element. It shares no code with core/proof and follows only plan.h.
//
// Orders: with every element written once, what a read finds, in any order that the plan permits,
// depends only on whether its write must have happened before on that rank. So one run in listed
// order, with this check on every read, covers all orders.
//
// In addition, wherever a fold's result ends up, the fold must be one of the request's: of one
// element, with each addend once, by the request's operator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace reshard::test {

// The value of one element. `element` < 0: not an element of the tensor.
struct SlowValue {
  enum class State : std::uint8_t { Unwritten, Padding, Mixture, Value };
  State state = State::Unwritten;
  std::int32_t writer = -1;  // step; -1: the source
  std::int64_t element = -1;
  std::uint64_t addends = 0;  // one bit each
  std::int64_t divisor = 1;
  bool holds(const SlowValue& other) const {
    return state == other.state && element == other.element && addends == other.addends &&
           divisor == other.divisor;
  }
};

// What one tensor of a plan starts from and must end with; computed once for many plans.
class SlowMeaning {
 public:
  // At most 64 addends. Shapes get leading dims of extent 1 up to `dims`.
  explicit SlowMeaning(const Request& request, int dims = 1);
  struct Shard {
    Rank rank;
    Shape shape;
    std::vector<SlowValue> values;  // local row-major
  };
  const std::vector<Shard>& source() const { return source_; }
  const std::vector<Shard>& destination() const { return destination_; }
  ReduceOp op() const { return op_; }
  DType dtype() const { return dtype_; }

 private:
  std::vector<Shard> source_, destination_;
  ReduceOp op_ = ReduceOp::Sum;
  DType dtype_;
};

// By tensor.
using SlowMeanings = std::vector<SlowMeaning>;

// Every buffer of a plan, while its steps run one by one.
class SlowRun {
 public:
  SlowRun(const SlowMeanings& meanings, const Plan& plan);

  // Runs the plan's step, which must be the next one. Returns false if the step is wrong; fault()
  // then says why. Steps and temporaries may have been added to `plan` since the last call.
  bool run_step(std::size_t step);
  // Call after the last step.
  bool check_destination();
  const std::string& fault() const { return fault_; }
  // In row-major order; the slot must have the buffer.
  const std::vector<SlowValue>& held(BufferId buffer, Slot slot) { return values(buffer, slot); }

 private:
  struct Wrong {
    std::string what;
  };
  using Values = std::vector<SlowValue>;

  Values& values(BufferId buffer, Slot slot);
  const SlowValue& read(BufferId buffer, Slot slot, std::size_t index);
  void write(BufferId buffer, Slot slot, std::size_t index, SlowValue value);
  SlowValue joined(const SlowValue& a, const SlowValue& b) const;
  SlowValue folded(const std::vector<SlowValue>& operands, BufferId of, ReduceOp op,
                   std::int64_t divisor) const;
  void follow_order(const Step& step);
  void demand(bool holds, const char* what) const {
    if (!holds) throw Wrong{what};
  }
  void demand_buffer(BufferId buffer, Slot slot) const;
  void demand_box(BufferId buffer, Slot slot, const DimVector& lo, const DimVector& extents) const;
  // Both buffers must exist.
  void demand_ends(BufferId from, BufferId to) const;
  const SlowMeaning& meaning(BufferId buffer) const;
  void demand_slot(Slot slot) const;
  void demand_operator(ReduceOp op, std::int64_t divisor, DType dtype) const;
  void demand_ranges(const std::vector<MoveRange>& ranges, const MoveList& moves) const;
  void move(const Move& move, Slot from, Slot to);
  void run(const CopyStep& step);
  void run(const FillStep& step);
  void run(const ExchangeStep& step);
  void run(const ReduceStep& step);
  void run(const CollectiveStep& step);
  void run_group(const CollectiveStep& step, std::size_t g);

  const SlowMeanings& meanings_;
  const Plan& plan_;
  std::vector<Values> memory_;  // [buffer * slots + slot]
  // Per slot and step, the steps that must be done on the slot before its part of the step starts.
  std::vector<std::vector<std::vector<bool>>> before_;
  std::vector<std::vector<bool>> takes_part_;  // [slot][step]
  std::int32_t step_ = 0;
  std::string fault_;
};

// Why the plan is wrong; empty if it is right.
std::string slow_fault(const SlowMeanings& meanings, const Plan& plan);

}  // namespace reshard::test
