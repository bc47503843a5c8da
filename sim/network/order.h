// SPDX-License-Identifier: BSD-3-Clause
// A workload's order: what each rank issues, one launch after another, and what each launch waits
// for. Dependencies between whole operations (`after`) are not resolved here: it only lists which
// operation names which.
//
// Each rank that takes part in an operation has a *place* in it. What a rank issues at once, a
// place or the places of a batch, is a *launch*. The nodes of a launch are its places and, if it
// has several, its gate and its end; for a single place both are the place itself. A launch begins
//
//     after  the end of the previous launch on its stream (async ones do not count), of the
//            previous launch of its communicator, and of what its host last waited for,
//     with   the beginning of the previous launch of any communicator, if the launch order is
//            implicit,
//     and    when all operations that its operations name in `after` are complete.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/grouped.h"
#include "core/base/ids.h"
#include "core/traffic/workload.h"

namespace reshard::sim {

// Which rules of a workload's order apply.
struct OrderRules {
  bool communicators = true;
  bool implicit_launch_order = false;  // NCCL_LAUNCH_ORDER_IMPLICIT
};

class Order {
 public:
  static constexpr std::int32_t kNone = -1;

  // What a launch waits for, each a node or kNone: the end of each node; for `launch`, its
  // beginning.
  struct Predecessors {
    std::int32_t stream = kNone, communicator = kNone, host = kNone, launch = kNone;

    // The nodes that must end before it begins, each once.
    std::array<std::int32_t, 3> ends() const;
  };
  struct LaunchNodes {
    std::int32_t gate, end;
  };

  explicit Order(const Workload& workload, OrderRules rules = {});

  const OrderRules& rules() const { return rules_; }

  // Places of an operation, from first_of to end_of - 1. A message has its source's and then its
  // destination's; a message within one rank and stream has one.
  std::int32_t first_of(OpId op) const { return first_[op]; }
  std::int32_t end_of(OpId op) const { return first_[to_index(op) + 1]; }
  std::size_t places() const { return ops_.size(); }
  OpId op_of(std::int32_t place) const { return ops_[place]; }
  std::span<const Rank> ranks_of(OpId op) const;

  // Nodes: the places, then gates and ends of batches.
  std::size_t nodes() const { return predecessors_.size(); }
  bool is_place(std::int32_t node) const { return to_index(node) < places(); }
  Rank rank_of(std::int32_t node) const { return ranks_[node]; }
  // The node that the operations named in `after` by the place's operation release.
  std::int32_t gate_of(std::int32_t place) const { return gates_.empty() ? place : gates_[place]; }
  // Whether a launch ends with this node.
  bool ends_launch(std::int32_t node) const;
  // Places of the launch to which the node belongs; the launch has several places.
  std::span<const std::int32_t> batch_of(std::int32_t node) const;
  // Number of nodes that the node waits for, without `after`; each counts once.
  std::int32_t waits_of(std::int32_t node) const { return waits_[node]; }
  const Predecessors& predecessors(std::int32_t gate) const { return predecessors_[gate]; }
  // The nodes that wait for the end of a node, and for its beginning.
  std::span<const std::int32_t> at_end(std::int32_t node) const { return at_end_[node]; }
  std::span<const std::int32_t> at_start(std::int32_t node) const { return at_start_[node]; }

  Rank highest_rank() const { return Rank{highest_}; }  // -1 without places
  // By rank, in the order of issue; indices into launches().
  const Grouped<std::int32_t>& issued() const { return issued_; }
  const std::vector<LaunchNodes>& launches() const { return launches_; }
  // The operations that name an operation in `after`.
  std::span<const OpId> dependents(OpId op) const { return dependents_[op]; }

 private:
  struct Entry;
  struct Last;

  void add_places(const Workload& workload);
  void add_dependents(const Workload& workload);
  std::vector<Entry> entries(const Workload& workload) const;
  void add_launches(const Workload& workload, std::span<const Entry> of_rank);
  LaunchNodes join(std::span<const Entry> batch);
  void link();

  OrderRules rules_;
  std::int32_t highest_ = -1;              // rank
  IndexVector<OpId, std::int32_t> first_;  // place, by operation; one more at the end
  IndexVector<std::int32_t, OpId> ops_;    // by place
  IndexVector<std::int32_t, Rank> ranks_;  // by node
  IndexVector<std::int32_t, std::int32_t> gates_, ends_;  // by place; empty without batches
  IndexVector<std::int32_t, Predecessors> predecessors_;  // by node; only of gates
  IndexVector<std::int32_t, std::int32_t> waits_;
  Grouped<std::int32_t> at_end_, at_start_;
  Grouped<std::int32_t> issued_;
  std::vector<LaunchNodes> launches_;
  Grouped<OpId> dependents_;
};

}  // namespace reshard::sim
