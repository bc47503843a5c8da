// SPDX-License-Identifier: BSD-3-Clause
// The meaning of steps, as operations on boxes. Apart from the plan itself, its text and the check
// of its structure, only this knows the kinds of steps. Other code at most singles out collectives,
// for which it has closed forms.
//
// A box is part of some rank's buffer, and an operation can involve several ranks. Executors that
// reach all ranks' memory (the store, a GPU that holds every shard) run operations as they are;
// executors that send messages derive from them what a rank sends, receives and folds. Nothing is
// stored: operations are derived from the step on demand.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "core/plan/plan.h"

namespace reshard {

// The first element of a box in a rank's buffer; the extents are passed separately.
struct Place {
  Slot slot;
  BufferId buffer;
  DimVector lo;
  friend bool operator==(const Place&, const Place&) = default;
};

// Receives a step's operations in an order in which they can run one by one. Boxes have extents > 0
// and no two operations write the same element. No operation reads what another one writes, unless
// `then` comes between them.
class Operations {
 public:
  virtual ~Operations() = default;
  virtual void copy(const Place& from, const Place& to, const DimVector& extents) = 0;
  // Writes zeros.
  virtual void fill(const Place& to, const DimVector& extents) = 0;
  // The left fold of the operands in order, rounded after each operation, then divided if
  // `divisor` > 1.
  virtual void fold(ReduceOp op, std::int64_t divisor, std::span<const Place> operands,
                    const Place& to, const DimVector& extents) = 0;
  // The step's later operations can read what its earlier ones wrote.
  virtual void then() {}
  // The operations that follow are those of this part, message or group of the step (its index).
  virtual void part(std::size_t index) { (void)index; }
};

void lower(const Plan& plan, const Step& step, Operations& out);

// Calls visit(source, destination, bytes, boxes) for the messages of an exchange, in its order; for
// other steps never.
using VisitMessage =
    std::function<void(Slot source, Slot destination, std::int64_t bytes, std::int64_t boxes)>;
void for_each_message(const Plan& plan, const Step& step, const VisitMessage& visit);

// A box of a message; in a series, one box of each of `boxes` tensors, from tensor `first` on.
struct SentBox {
  TensorId tensor;
  std::int64_t first, boxes, bytes;  // of all boxes
};
// Calls visit(source, destination, box) for every box of the messages of an exchange, in their
// order; for other steps never.
using VisitSentBox = std::function<void(Slot source, Slot destination, const SentBox& box)>;
void for_each_sent_box(const Plan& plan, const Step& step, const VisitSentBox& visit);

// Calls visit(buffer, slot, is_write) for every access of a step; for a collective once per member
// and buffer.
using VisitAccess = std::function<void(BufferId, Slot, bool is_write)>;
void for_each_access(const Plan& plan, const Step& step, const VisitAccess& visit);

}  // namespace reshard
