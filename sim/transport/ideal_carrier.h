// SPDX-License-Identifier: BSD-3-Clause
// The transport that costs nothing beside the links: what bounds are compared with. Rings of a
// group on several nodes go over every NIC, as any library's do; all else is Transfers' own.
#pragma once

#include <span>
#include <vector>

#include "core/topology/topology.h"
#include "sim/network/carrier.h"

namespace reshard::sim {

// Members of a group, by index, node after node; in a node by rank.
std::vector<std::vector<std::int32_t>> members_by_node(const Topology& topology,
                                                       std::span<const Rank> ranks);

// How rings go through groups of `group_size` ranks, one after another. A group on one node has one
// ring, by rank. On several it has as many as its smallest node has members: ring c enters each
// node at its c-th member, passes all, and leaves it at the one before.
std::vector<RingPlace> rings_of(const Topology& topology, std::span<const Rank> ranks,
                                std::int32_t group_size);

// What goes along the rings of a group where each member passes `bytes` on, cut over the rings.
// Terms are left open.
std::vector<Flow> ring_flows(const Topology& topology, std::span<const Rank> ranks,
                             std::int64_t bytes);
// Makes a pipeline of them that begins or ends at the root.
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
