// SPDX-License-Identifier: BSD-3-Clause
// What one rank does, in order: launches of local work, of messages and of collectives that a
// library carries out whole. Executors in which ranks have memory of their own run it, the C API
// shows it.
//
// It is a function of the plan and of a policy that says which collectives stay a library's own.
// The others become messages between all pairs of the group and folds in the order that the plan
// declares: a ring would send as many bytes but fold in another order. Derived for the ranks that
// are asked for; what a rank has of a collective grows with the group, not with its square.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <variant>
#include <vector>

#include "core/plan/plan.h"
#include "core/schedule/lowering.h"

namespace reshard {

struct PlacedBox {
  Place at;
  DimVector extents;
};

struct PlacedMove {
  Place from, to;
  DimVector extents;
  friend bool operator==(const PlacedMove&, const PlacedMove&) = default;
};

// Operations in the rank's own memory, none of which reads what another writes.
struct LocalWork {
  struct Fold {
    std::vector<Place> operands;
    Place to;
    DimVector extents;
  };
  std::vector<PlacedMove> copies;
  std::vector<PlacedBox> fills;
  std::vector<Fold> folds;
  ReduceOp op = ReduceOp::Sum;  // of all folds
  std::int64_t divisor = 1;

  std::size_t size() const { return copies.size() + fills.size() + folds.size(); }
  void run_one(std::size_t i, Operations& out) const;
  void run(Operations& out) const {
    for (std::size_t i = 0; i < size(); ++i) run_one(i, out);
  }
};

// All in flight at once. A message is the boxes of its moves in order, each row-major.
struct Messages {
  struct PeerMessage {
    Slot peer;
    std::vector<PlacedMove> moves;  // from this rank or to it
  };
  std::vector<PeerMessage> sends, receives;  // ascending by peer, one each at most
};

// One box on every member, at the same coordinates (CollectiveStep says what it means).
struct NativeCollective {
  CollectiveKind kind;
  ReduceOp op;
  std::int64_t divisor;
  std::int32_t member;
  PlacedBox input, output;
  int input_dim, output_dim;
};

struct Launch {
  StepId step;
  // Positions of launches that must be done before, ascending. Steps in which the rank has no part
  // are passed over.
  std::vector<std::int32_t> after;
  // The group in its order, where the launch is of a collective; else empty.
  std::vector<Slot> group;
  std::variant<LocalWork, Messages, NativeCollective> work;
};

// What a policy decides on: one collective step, all groups of which are treated alike.
struct CollectiveFacts {
  CollectiveKind kind;
  ReduceOp op;
  std::int64_t divisor;
  DType dtype;
  std::int32_t group_size;
  std::int64_t operand_bytes;  // the largest of a member, input or output
  bool contiguous;             // each operand is one stretch of its buffer on every member
  bool folds() const {
    return kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllReduce;
  }
};

struct SchedulePolicy {
  // Whether a library carries the collective out; unset: all.
  std::function<bool(const CollectiveFacts&)> native = {};
  // Else divisions are launches of their own behind the collective.
  bool native_divides = true;
};

// Messages only.
inline SchedulePolicy no_native_collectives() {
  return {[](const CollectiveFacts&) { return false; }};
}

// A buffer of the plan, or scratch for operands of a fold or for what awaits its division.
struct LocalBuffer {
  TensorId tensor;
  DType dtype;
  Shape shape;  // where `exists`
  bool exists = false, temporary = false;
  std::int64_t bytes() const { return exists ? element_count(shape) * size_bytes(dtype) : 0; }
};

struct RankSchedule {
  Slot slot = -1;
  std::vector<Launch> launches;      // those of a step together, steps in listed order
  std::vector<LocalBuffer> buffers;  // the plan's, then scratch
  const LocalBuffer& buffer(BufferId id) const { return buffers[to_index(id)]; }
};

// One schedule per slot given (ascending, each once), found in one pass over the plan, which must
// be proved.
std::vector<RankSchedule> rank_schedules(const Plan& plan, std::span<const Slot> slots,
                                         const SchedulePolicy& policy);

// visit(box, is_write) for every box that the launch reads or writes on its rank.
void for_each_box(const Launch& launch,
                  const std::function<void(const PlacedBox&, bool is_write)>& visit);

// The plan's collectives in listed order.
using VisitCollective = std::function<void(StepId, const CollectiveFacts&)>;
void for_each_collective(const Plan& plan, const VisitCollective& visit);
// Their groups, in global ranks; none for other steps.
std::vector<std::vector<Rank>> groups_of(const Plan& plan, StepId step);

// Elements of a collective's count: input of all_gather, output of reduce_scatter, buffer of
// all_reduce, block of all_to_all.
std::int64_t count_of(const NativeCollective& collective, std::int32_t group_size);

}  // namespace reshard
