// SPDX-License-Identifier: BSD-3-Clause
// Communicators under a policy: which one each operation of a workload uses, when each is created,
// its cost in time and memory, and the first use of each peer.
//
// Creating a communicator is a setup (workload.h): hosts meet, and what a rank issues after it
// waits. A rank creates a communicator when it first needs it, or at the start; the first message
// between two ranks of a communicator connects them, which is a setup of these two.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/topology/topology.h"
#include "core/traffic/communicator_policy.h"

namespace reshard {
struct Plan;
struct Workload;
}  // namespace reshard

namespace reshard::sim {

// From the topology's figures comm.* (machine.h), with the defaults of nccl_costs.h.
struct SetupCosts {
  std::int64_t init_ps, rank_ps, split_ps, connect_ps;
  std::int64_t memory_bytes;  // of a communicator on each GPU
  std::int64_t peer_bytes;    // of a peer: all its channels

  std::int64_t making_ps(std::size_t ranks) const;
};
SetupCosts setup_costs_of(const Topology& topology);

struct CommunicatorUse {
  CommunicatorPolicy policy = CommunicatorPolicy::Eager;
  std::int64_t created = 0, connected = 0;  // number of communicators, and of pairs of ranks in
                                            // them
  // On the host that spends most, without waiting for others.
  std::int64_t making_ps = 0, connecting_ps = 0;
  std::int64_t bytes = 0;  // on the GPU that holds most
  std::int64_t first_use_ps() const { return making_ps + connecting_ps; }
  // One sentence if PyTorch warns; else empty.
  std::string warning = {};
  // Messages of which one end would use the parent and the other end a communicator of the pair.
  struct ParentMismatch {
    OpId op;
    Rank with_parent, without;
  };
  std::vector<ParentMismatch> parent_mismatches = {};
  // Ranks without a part in the first use of a parent that is created on first use, and the
  // operation.
  std::vector<Rank> absent = {};
  OpId first_of_parent{0};
};

// What the first use of one plan creates: the communicator of its ranks, if it has messages or
// collectives of all of them or the policy creates it at the start; those of its collectives'
// groups; and the connection to each peer that it sends to. All of them again for each further
// stream of the plan that uses them.
CommunicatorUse first_use_of(const Plan& plan, CommunicatorPolicy policy, const SetupCosts& costs);

// Sets the communicator of each operation of the workload and appends the setups. These take time
// if `cold`; otherwise they take none, but their ranks still meet. `members` is indexed by the
// numbers that operations use for their communicators. Those that are `named` were created by the
// job itself, at the start; the others belong to groups.
CommunicatorUse use_communicators(CommunicatorPolicy policy, const SetupCosts& costs, bool cold,
                                  std::span<const std::vector<Rank>> members,
                                  const std::vector<bool>& named,
                                  const std::function<bool(OpId)>& by_nccl, Workload& workload);

}  // namespace reshard::sim
