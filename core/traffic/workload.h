// SPDX-License-Identifier: BSD-3-Clause
// What the engine runs: plans, compute, messages and bare collectives with dependencies and
// per-rank streams.
//
// Operations of one (rank, stream) run in listed order. An operation starts on a rank when every
// operation in its `after` is complete on all ranks and the rank's previous operation on that
// stream is done. Nothing else orders operations. Steps inside a plan follow the plan's own
// dependencies.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/ids.h"
#include "core/plan/plan.h"
#include "core/traffic/expansion.h"

namespace reshard {

struct RunPlan {
  std::shared_ptr<const Plan> plan;
};

struct Compute {
  std::vector<Rank> ranks;
  std::int64_t duration_ps;
};

// A matched pair: one operation on two ranks, each with its own place in its own stream. Both ends
// must be reached; then `bytes` flow.
struct Message {
  Rank source, destination;
  std::int64_t bytes;
  std::int32_t destination_stream;  // the operation's `stream` is the source's
  // Place of the receiving end among the operations: it runs on its stream as if listed there.
  // Equal to the own index where both ends are one line; else the end comes just before the
  // operation of that index (the number of operations: after all of them); ends of one place come
  // in the order of their operations.
  OpId destination_place;
  // Where something else limits it, such as who calls: at most this rate. At least 1.
  std::optional<std::int64_t> cap_bytes_per_s = {};
};

// A collective without a plan behind it; of one rank it takes no time. `bytes` is Expansion's
// `elements` in bytes.
struct BareCollective {
  CollectiveKind kind;
  Algorithm algorithm;
  std::vector<Rank> ranks;
  std::int64_t bytes;
};

struct Operation {
  std::variant<RunPlan, Compute, Message, BareCollective> body;
  std::int32_t stream = 0;
  std::vector<OpId> after;  // any operations; cycles are refused by the reader that builds the
                            // workload, and by the engine with a CheckFailure
};

struct Workload {
  std::vector<Operation> operations;
};

// A workload of one plan.
Workload workload_of(std::shared_ptr<const Plan> plan);

// Ranks with a part in the operation, in the order written; a message's source first.
std::vector<Rank> ranks_of(const Operation& operation);

// "p2p plan on ranks 0,1,2,3,.. (16 in all)", "message from rank 0 to rank 2": for messages to
// people.
std::string text(const Operation& operation);

}  // namespace reshard
