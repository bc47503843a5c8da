// SPDX-License-Identifier: BSD-3-Clause
// The interface to sim/transport: how a step of a plan, a message or a collective is carried, and
// so which transfers it makes and on what terms. The engine runs the transfers; it knows no
// transport.
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
  // Two parts: that of the source, then that of the destination.
  virtual Transfers message(const PointToPoint& message) = 0;
  // The collective has at least two ranks, each once; the parts are in their order.
  virtual Transfers collective(const BareCollective& collective) = 0;
  // Whether a rank's launches of one plan run one after another in the order of its steps, even if
  // these are independent: all launches on one stream, and launches on different streams that use
  // the same links, within nodes or between them. One kernel already reaches as much of a link as
  // kernels do; how much two would reach together is not known, so it is not assumed to be more.
  virtual bool in_turn() const { return false; }
  // Used only if in_turn().
  virtual std::int32_t node_of(Rank) const { return 0; }
};

// The carrier of each operation of a workload.
struct Carriers {
  Carrier* usual = nullptr;  // null: links alone, collectives by their default expansion
  std::span<Carrier* const> by_operation = {};  // may be empty; null: the usual one

  Carrier* of(OpId op) const {
    Carrier* own = by_operation.empty() ? nullptr : by_operation[to_index(op)];
    return own != nullptr ? own : usual;
  }
};

}  // namespace reshard::sim
