// SPDX-License-Identifier: BSD-3-Clause
// Steps carried by NCCL, as flows for the engine.
//
// A collective of a group is one round of flows along its rings (between nodes one ring per NIC),
// each as long as the cost form gives: latency first, then its bytes at the rate that makes them
// end in time. It begins when all members are there; work that the early ones could do before is
// left out. Sends and receives of a step are one group of the communicator of the plan's ranks:
// each message has a latency that depends on its size, and a rate limited by its ranks' thread
// blocks and by its own.
#pragma once

#include <unordered_map>
#include <vector>

#include "core/topology/topology.h"
#include "sim/network/carrier.h"
#include "sim/transport/nccl/nccl_costs.h"

namespace reshard::sim::nccl {

// Whether an all-to-all of groups of n has more flows than the engine accepts; the engine then
// refuses them when they arrive unchanged.
bool too_many(std::size_t n, std::size_t groups);

// Flows sorted by source, as Transfers expects them; those of one source stay in order.
Transfers in_order(std::span<const Slot> slots, std::vector<Flow>& flows);

class NcclCarrier : public Carrier {
 public:
  // Keeps references to both.
  NcclCarrier(const Topology& topology, const Constants& constants);

  Transfers step(const Plan& plan, const Step& step) override;
  Transfers message(const PointToPoint& message) override;
  Transfers collective(const BareCollective& collective) override;
  bool in_turn() const override { return true; }
  std::int32_t node_of(Rank rank) const override { return topology_.node_of(rank); }

  // Sets the terms of messages between parts, which are on `ranks`: one group of sends and receives
  // of the communicator.
  void price_messages(std::span<const Rank> communicator, std::span<const Rank> ranks,
                      std::span<Flow> flows);

 private:
  // Costs of a set of ranks in any order; computed once per set.
  const Costs& costs_of(std::vector<Rank> ranks);
  // Appends the flows of one group, with parts numbered from `first_part`; `bytes` as Expansion's
  // elements.
  void add_collective(CollectiveKind kind, std::span<const Rank> ranks, std::int32_t first_part,
                      std::int64_t bytes, std::vector<Flow>& flows);
  std::vector<Flow> pipeline(const BareCollective& collective);
  std::vector<Flow> rooted_messages(const BareCollective& collective);
  std::int64_t lay(std::vector<Flow>& ring, std::span<const Rank> ranks, const Costs& costs,
                   std::int64_t time_ps, const BareCollective* rooted) const;
  void run_in(std::span<Flow> flows, std::span<const Rank> ranks, const Costs& costs,
              std::int64_t moving_ps, std::int64_t time_ps) const;
  std::int64_t least_moving_ps(const std::vector<Flow>& flows, std::span<const Rank> ranks) const;
  // Applies the limits of the route: its latency, and the rate of buffers in host memory.
  void hold_to_route(Terms& terms, Rank source, Rank destination) const;

  const Topology& topology_;
  const Constants& constants_;
  Parameters parameters_;
  // Only looked up, never iterated.
  struct Hash {
    std::size_t operator()(const std::vector<Rank>& ranks) const;
  };
  std::unordered_map<std::vector<Rank>, Costs, Hash> known_;
};

}  // namespace reshard::sim::nccl
