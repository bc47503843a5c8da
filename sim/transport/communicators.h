// SPDX-License-Identifier: BSD-3-Clause
// Communicators as a policy makes them: which one each operation of a workload is of, when each is
// made, what that takes and holds, and the first use of each peer.
//
// Making one is a setup (workload.h): hosts meet, and what a rank issues behind it waits. A rank
// makes a communicator where it first needs it, or at the start; the first message between two
// ranks of a communicator connects them, which is a setup of the two.
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

// By the topology's figures comm.* (machine.h), else nccl_costs.h's.
struct SetupCosts {
  std::int64_t init_ps, rank_ps, split_ps, connect_ps;
  std::int64_t memory_bytes;  // of a communicator on each GPU
  std::int64_t peer_bytes;    // of a peer: all its channels

  std::int64_t making_ps(std::size_t ranks) const;
};
SetupCosts setup_costs_of(const Topology& topology);

struct CommunicatorUse {
  CommunicatorPolicy policy = CommunicatorPolicy::Eager;
  std::int64_t created = 0, connected = 0;  // communicators, pairs of ranks in them
  // Of the host that spends most of it, waiting for others not counted.
  std::int64_t making_ps = 0, connecting_ps = 0;
  std::int64_t bytes = 0;  // on the GPU that holds most
  std::int64_t first_use_ps() const { return making_ps + connecting_ps; }
  // One sentence, where PyTorch warns; else empty.
  std::string warning = {};
  // Messages of which one end would use the parent and the other one a communicator of the pair.
  struct Torn {
    OpId op;
    Rank with_parent, without;
  };
  std::vector<Torn> torn = {};
  // Who has no part in the first use of a parent that is made on first use, and the operation.
  std::vector<Rank> absent = {};
  OpId first_of_parent{0};
};

// What the first use of one plan makes: the communicator of its ranks, where it has messages or
// collectives of all of them or where the policy makes it at the start, those of its collectives'
// groups, and the first use of each peer that it sends to.
CommunicatorUse first_use_of(const Plan& plan, CommunicatorPolicy policy, const SetupCosts& costs);

// Says of each operation of the workload which communicator it is of, and appends the setups: which
// take their time where `cold`, else none, but meet all the same. `members` by the number that
// operations have for theirs; `named` of them were made by the job itself, at the start, the others
// are groups' own.
CommunicatorUse use_communicators(CommunicatorPolicy policy, const SetupCosts& costs, bool cold,
                                  std::span<const std::vector<Rank>> members,
                                  const std::vector<bool>& named,
                                  const std::function<bool(OpId)>& by_nccl, Workload& workload);

}  // namespace reshard::sim
