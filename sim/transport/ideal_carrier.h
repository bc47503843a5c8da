// SPDX-License-Identifier: BSD-3-Clause
// The transport without costs beyond the links, with which bounds are compared. Rings of a group on
// several nodes use every NIC, as those of any library do; all other steps are flows without terms.
#pragma once

#include <span>
#include <vector>

#include "core/topology/topology.h"
#include "sim/network/carrier.h"

namespace reshard::sim {

// Members of a group, by index, node after node; within a node by rank.
std::vector<std::vector<std::int32_t>> members_by_node(const Topology& topology,
                                                       std::span<const Rank> ranks);

// The rings of groups of `group_size` ranks, one group after another. A group on one node has one
// ring, by rank. On several nodes it has as many rings as its smallest node has members: ring c
// enters each node at its c-th member, passes all, and leaves at the one before.
std::vector<RingPlace> rings_of(const Topology& topology, std::span<const Rank> ranks,
                                std::int32_t group_size);

// The flows along the rings of a group in which each member passes on `bytes`, divided among the
// rings. Terms are left open.
std::vector<Flow> ring_flows(const Topology& topology, std::span<const Rank> ranks,
                             std::int64_t bytes);
// Turns them into a pipeline that begins or ends at the root.
void cut_at_root(const BareCollective& collective, std::vector<Flow>& flows);

class IdealCarrier : public Carrier {
 public:
  // Keeps a reference.
  explicit IdealCarrier(const Topology& topology) : topology_(topology) {}

  Transfers step(const Plan& plan, const Step& step) override;
  Transfers message(const PointToPoint& message) override;
  Transfers collective(const BareCollective& collective) override;

 private:
  Transfers over_nics(Transfers transfers, std::span<const Rank> ranks) const;

  const Topology& topology_;
};

}  // namespace reshard::sim
