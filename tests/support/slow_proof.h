// SPDX-License-Identifier: BSD-3-Clause
// A second proof, element by element: the plan is run with one symbolic value per element of every
// buffer (which element of the tensor, the set of addends, the divisor), over memory that is
// poisoned per element. It shares no code with core/proof and follows plan.h alone.
//
// Orders: with every element written once, what a read finds in any order that the plan permits
// depends only on whether its write must have happened before on that rank. So one run in listed
// order, with that asked of every read, stands for all orders.
//
// Beside that a fold must be one of the request's wherever its result ends: of one element, each
// addend once, by the request's operator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace reshard::test {

// Of one element. `element` < 0: none of the tensor's.
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

// What one tensor of a plan starts from and must end with; worked out once for many plans.
class SlowMeaning {
 public:
  // At most 64 addends. Shapes lead with 1 up to `dims`.
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

// Every buffer of a plan while its steps run one by one.
class SlowRun {
 public:
  SlowRun(const SlowMeanings& meanings, const Plan& plan);

  // Runs the plan's step, which must be the next one; false where it is wrong, and then fault()
  // says why. `plan` may have got steps and temporaries since.
  bool run_step(std::size_t step);
  // After the last step.
  bool check_destination();
  const std::string& fault() const { return fault_; }
  // Row-major; the slot has the buffer.
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
  // Both exist.
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
  // Per slot and step the steps that must be done on the slot before its part of it starts.
  std::vector<std::vector<std::vector<bool>>> before_;
  std::vector<std::vector<bool>> takes_part_;  // [slot][step]
  std::int32_t step_ = 0;
  std::string fault_;
};

// Why the plan is wrong; empty where it is right.
std::string slow_fault(const SlowMeanings& meanings, const Plan& plan);

}  // namespace reshard::test
