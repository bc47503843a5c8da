// SPDX-License-Identifier: BSD-3-Clause
// What one rank does, in order: launches of local work, of messages, and of collectives that a
// library carries out. Executors in which each rank has its own memory run it; the C API shows it.
//
// It follows from the plan and from a policy that defines which collectives a library runs. The
// others become messages between all pairs of the group and folds in the order that the plan
// declares: a ring would send as many bytes but fold in another order. It is derived only for the
// ranks asked for; a rank's share of a collective grows with the group, not with its square.
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
  std::vector<PeerMessage> sends, receives;  // ascending, at most one per peer
};

// One box at the same coordinates on every member (CollectiveStep gives its meaning).
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
  // Indices of the launches that must be done before this one, ascending. A step in which the rank
  // has no part contributes none.
  std::vector<std::int32_t> after;
  // The group in its order, if the launch belongs to a collective; else empty.
  std::vector<Slot> group;
  std::variant<LocalWork, Messages, NativeCollective> work;
};

// What a policy's decision about one collective step is based on. All its groups are treated the
// same.
struct CollectiveFacts {
  CollectiveKind kind;
  ReduceOp op;
  std::int64_t divisor;
  DType dtype;
  std::int32_t group_size;
  std::int64_t operand_bytes;  // of the largest operand of a member, input or output
  bool contiguous;  // each operand is one contiguous range of its buffer, on every member
  bool folds() const {
    return kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllReduce;
  }
};

struct SchedulePolicy {
  // Whether a library carries the collective out; unset: always.
  std::function<bool(const CollectiveFacts&)> native = {};
  // If false, divisions are separate launches after the collective.
  bool native_divides = true;
};

// Messages only.
inline SchedulePolicy no_native_collectives() {
  return {[](const CollectiveFacts&) { return false; }};
}

// A buffer of the plan, or scratch for operands of a fold or for values to be divided.
struct LocalBuffer {
  TensorId tensor;
  DType dtype;
  Shape shape;  // valid if `exists`
  bool exists = false, temporary = false;
  std::int64_t bytes() const { return exists ? element_count(shape) * size_bytes(dtype) : 0; }
};

struct RankSchedule {
  Slot slot = -1;
  std::vector<Launch> launches;      // grouped by step, steps in listed order
  std::vector<LocalBuffer> buffers;  // the plan's, then scratch
  const LocalBuffer& buffer(BufferId id) const { return buffers[to_index(id)]; }
};

// One schedule per given slot (ascending, each once), derived in one pass over the plan, which must
// be proved.
std::vector<RankSchedule> rank_schedules(const Plan& plan, std::span<const Slot> slots,
                                         const SchedulePolicy& policy);

// Calls visit(box, is_write) for every box that the launch reads or writes on its rank.
void for_each_box(const Launch& launch,
                  const std::function<void(const PlacedBox&, bool is_write)>& visit);

// Visits the plan's collectives in listed order.
using VisitCollective = std::function<void(StepId, const CollectiveFacts&)>;
void for_each_collective(const Plan& plan, const VisitCollective& visit);
// The step's groups in global ranks; empty unless it is a collective.
std::vector<std::vector<Rank>> groups_of(const Plan& plan, StepId step);

// The collective's count in elements: the input of all_gather, the output of reduce_scatter, the
// buffer of all_reduce, the block of all_to_all.
std::int64_t count_of(const NativeCollective& collective, std::int32_t group_size);

}  // namespace reshard
