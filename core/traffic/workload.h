// SPDX-License-Identifier: BSD-3-Clause
// What the engine runs: plans, compute, messages and bare collectives with dependencies and
// per-rank streams.
//
// A rank issues its operations in listed order and never waits for them, except for a setup. An
// operation starts on a rank when every operation in its `after` is complete on all ranks, when the
// rank's previous operation on that stream is done, and when its previous one of that communicator
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

// Takes its duration where nothing disturbs it.
struct Compute {
  std::vector<Rank> ranks;
  std::int64_t duration_ps;
  std::int64_t blocks = 0;  // thread blocks of each of its kernels; 0: not known
};

// A matched pair: one operation on two ranks. Both ends must be reached; then `bytes` flow.
struct PointToPoint {
  Rank source, destination;
  std::int64_t bytes;
  // Where something else limits it, such as who calls: at most this rate. At least 1.
  std::optional<std::int64_t> cap_bytes_per_s = {};
};

// What hosts do together before they go on, such as making a communicator: it begins when all its
// ranks have come to it, and what a rank issues behind it starts later, on every stream.
struct Setup {
  std::vector<Rank> ranks;
  std::int64_t duration_ps;
};

// Where a rank's part of an operation stands among what the rank issues, and how.
struct Seat {
  // As if it were listed there: equal to the operation's own index where it is; else just before
  // the operation of that index (the number of operations: after all of them). Of what
  // stands at one place setups come first, then the others in the order of their operations.
  OpId at{0};
  std::int32_t stream = 0;
  // Nothing behind it on its stream waits for it (isend, async_op).
  bool async = false;
  // Seats of one rank that come one after the other with the same number start together, when all
  // of them can, and are one launch (a group of NCCL calls); -1: none. They share a stream and a
  // communicator.
  std::int32_t batch = -1;
};

struct Operation {
  std::variant<RunPlan, Compute, PointToPoint, BareCollective, Setup> body;
  std::int32_t stream = 0;
  std::vector<OpId> after;  // any operations; cycles are refused by the reader that builds the
                            // workload, and by the engine with a CheckFailure
  std::int32_t communicator = -1;  // any number of its own; -1: none
  std::vector<Seat> seats = {};    // as ranks_of(); empty: all where it is listed, on `stream`

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

// No compute and no setup.
bool moves_bytes(const Operation& operation);

// "p2p plan on ranks 0,1,2,3,.. (16 in all)", "message from rank 0 to rank 2": for messages to
// people.
std::string text(const Operation& operation);

}  // namespace reshard
