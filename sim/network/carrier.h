// SPDX-License-Identifier: BSD-3-Clause
// The seam to sim/transport: what carries a step of a plan, a message, a collective, and so which
// transfers it makes and on which terms. The engine runs them; it knows no transport.
#pragma once

#include <span>

#include "core/base/ids.h"
#include "core/plan/plan.h"
#include "core/traffic/transfers.h"

namespace reshard {
struct BareCollective;
struct PointToPoint;
}  // namespace reshard

namespace reshard::sim {

class Carrier {
 public:
  virtual ~Carrier() = default;
  // The parts must be those of Transfers' own constructor, in its order.
  virtual Transfers step(const Plan& plan, const Step& step) = 0;
  // Two parts: the source's, the destination's.
  virtual Transfers message(const PointToPoint& message) = 0;
  // Of at least two ranks, each once; parts in their order.
  virtual Transfers collective(const BareCollective& collective) = 0;
  // A rank's launches of one plan follow each other, in the order of its steps, though they may be
  // independent: on the one stream of a communicator.
  virtual bool in_turn() const { return false; }
};

// Who carries each operation of a workload.
struct Carriers {
  Carrier* usual = nullptr;  // null: links alone, collectives by their default expansion
  std::span<Carrier* const> by_operation = {};  // or empty; null: the usual one

  Carrier* of(OpId op) const {
    Carrier* own = by_operation.empty() ? nullptr : by_operation[to_index(op)];
    return own != nullptr ? own : usual;
  }
};

}  // namespace reshard::sim
