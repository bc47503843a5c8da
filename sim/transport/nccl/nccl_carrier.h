// SPDX-License-Identifier: BSD-3-Clause
// Steps as NCCL carries them, made into flows for the engine.
//
// A collective of a group is one round of flows along its rings (between nodes one ring per NIC),
// each as long as the form says: latency first, then its bytes at the rate that ends them in time.
// It begins when all members are there; what the early ones could do meanwhile is left out.
// Sends and receives of a step are one group of the communicator of the plan's ranks: each message
// has a latency by its size and a rate that its rank's thread blocks, and its own, allow.
#pragma once

#include <unordered_map>
#include <vector>

#include "core/topology/topology.h"
#include "sim/network/carrier.h"
#include "sim/transport/nccl/nccl_costs.h"

namespace reshard::sim::nccl {

// An all-to-all of groups of n has more flows than the engine takes; it refuses them when they come
// as they are.
bool too_many(std::size_t n, std::size_t groups);

// Flows by their source, as Transfers takes them; of one source they stay in order.
Transfers in_order(std::span<const Slot> slots, std::vector<Flow>& flows);

class NcclCarrier : public Carrier {
 public:
  // Keeps references to both.
  NcclCarrier(const Topology& topology, const Constants& constants);

  Transfers step(const Plan& plan, const Step& step) override;
  Transfers message(const PointToPoint& message) override;
  Transfers collective(const BareCollective& collective) override;
  bool in_turn() const override { return true; }

  // Gives terms to messages between parts, which lie on `ranks`: one group of sends and receives of
  // the communicator.
  void price_messages(std::span<const Rank> communicator, std::span<const Rank> ranks,
                      std::span<Flow> flows);

 private:
  // Of a set of ranks, whatever their order; found once.
  const Costs& costs_of(std::vector<Rank> ranks);
  // Appends the flows of one group, whose parts count from `first_part`; `bytes` as Expansion's
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
  // No first byte arrives sooner than the route lets it; buffers that the host holds have a rate.
  void hold_to_route(Terms& terms, Rank source, Rank destination) const;

  const Topology& topology_;
  const Constants& constants_;
  Parameters parameters_;
  // Looked up only, never iterated.
  struct Hash {
    std::size_t operator()(const std::vector<Rank>& ranks) const;
  };
  std::unordered_map<std::vector<Rank>, Costs, Hash> known_;
};

}  // namespace reshard::sim::nccl
