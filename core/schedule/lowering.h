// SPDX-License-Identifier: BSD-3-Clause
// What a step means, as operations on boxes. Beside the plan's text and the check of its structure
// this is the only place that knows the kinds of steps; others ask at most for collectives, of
// which they know closed forms.
//
// A box lies in a buffer of some rank, and an operation may name several ranks: executors that
// reach all ranks' memory (the store, a GPU that holds every shard) run operations as they are;
// those that send messages take from them what a rank sends, receives and folds. Nothing is stored:
// operations are worked out from the step when they are asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "core/plan/plan.h"

namespace reshard {

// The first element of a box in a rank's buffer; extents stand beside it.
struct Place {
  Slot slot;
  BufferId buffer;
  DimVector lo;
  friend bool operator==(const Place&, const Place&) = default;
};

// Takes the operations of a step, in an order in which they may be run one by one. Boxes have
// extents > 0 and no two operations write the same element; what an operation reads, no other
// writes, except where `then` stands between them.
class Operations {
 public:
  virtual ~Operations() = default;
  virtual void copy(const Place& from, const Place& to, const DimVector& extents) = 0;
  // Zeros.
  virtual void fill(const Place& to, const DimVector& extents) = 0;
  // The left fold of the operands in order, rounded after each operation, then divided where
  // `divisor` > 1.
  virtual void fold(ReduceOp op, std::int64_t divisor, std::span<const Place> operands,
                    const Place& to, const DimVector& extents) = 0;
  // What follows in the step may read what came before in it.
  virtual void then() {}
  // What follows is of that part, message or group of the step, counted as its list is.
  virtual void part(std::size_t index) { (void)index; }
};

void lower(const Plan& plan, const Step& step, Operations& out);

// Calls visit(source, destination, bytes, boxes) for the messages of a step that is no collective,
// in its order.
using VisitMessage =
    std::function<void(Slot source, Slot destination, std::int64_t bytes, std::int64_t boxes)>;
void for_each_message(const Plan& plan, const Step& step, const VisitMessage& visit);

// Calls visit(buffer, slot, is_write) for every access of a step; those of a collective once per
// member and buffer.
using VisitAccess = std::function<void(BufferId, Slot, bool is_write)>;
void for_each_access(const Plan& plan, const Step& step, const VisitAccess& visit);

}  // namespace reshard
