// SPDX-License-Identifier: BSD-3-Clause
// What the engine runs: plans, compute, messages and bare collectives, with dependencies and
// per-rank streams.
//
// A rank issues its operations in listed order and never waits for them, except for a setup. An
// operation starts on a rank when every operation in its `after` is complete on all ranks, when the
// rank's previous operation on that stream is done, and when its previous one on that communicator
// is. Nothing else orders operations. Steps inside a plan follow the plan's own dependencies.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/ids.h"
#include "core/plan/plan.h"
#include "core/traffic/bare_collective.h"

namespace reshard {

struct RunPlan {
  std::shared_ptr<const Plan> plan;
};

// Takes `duration_ps` when nothing else slows it down.
struct Compute {
  std::vector<Rank> ranks;
  std::int64_t duration_ps;
  std::int64_t blocks = 0;  // thread blocks of each of its kernels; 0: unknown
};

// A matched send and receive: one operation on two ranks. `bytes` flow once both have reached it.
struct PointToPoint {
  Rank source, destination;
  std::int64_t bytes;
  // A rate limit from something other than the route, such as the calling code. At least 1.
  std::optional<std::int64_t> cap_bytes_per_s = {};
};

// Work that hosts do together before they go on, such as creating a communicator. It begins when
// all its ranks have reached it; what a rank issues after it starts later, on every stream.
struct Setup {
  std::vector<Rank> ranks;
  std::int64_t duration_ps;
};

// The position of a rank's part of an operation in the order in which the rank issues, and how it
// is issued.
struct Seat {
  // The operation's own index if it is issued where it is listed; else it is issued just before the
  // operation with this index (the number of operations: after all of them). At one position setups
  // come first, then the others in operation order.
  OpId at{0};
  std::int32_t stream = 0;
  // Later operations on its stream do not wait for it (isend, async_op).
  bool async = false;
  // Consecutive seats of a rank with the same number start together, once all of them can, and are
  // one launch (a group of NCCL calls); -1: none. They share a stream and a communicator.
  std::int32_t batch = -1;
};

struct Operation {
  std::variant<RunPlan, Compute, PointToPoint, BareCollective, Setup> body;
  std::int32_t stream = 0;
  // Any operations. The reader that builds the workload refuses cycles; the engine throws a
  // CheckFailure on one.
  std::vector<OpId> after;
  std::int32_t communicator = -1;  // any number that identifies it; -1: none
  std::vector<Seat> seats = {};    // as ranks_of(); empty: all as listed, on `stream`

  Seat seat(std::size_t part, OpId self) const {
    return seats.empty() ? Seat{self, stream} : seats[part];
  }
};

struct Workload {
  std::vector<Operation> operations;
};

// A workload of one plan.
Workload workload_of(std::shared_ptr<const Plan> plan);

// Ranks with a part in the operation, in the order written; a message's source first.
std::vector<Rank> ranks_of(const Operation& operation);

// False for compute and setups.
bool moves_bytes(const Operation& operation);

// For messages: "p2p plan on ranks 0,1,2,3,.. (16 in total)", "message from rank 0 to rank 2".
std::string text(const Operation& operation);

}  // namespace reshard
