// SPDX-License-Identifier: BSD-3-Clause
// The plan: everything that planners decide and everything that proof, store, engine and backends
// need, as plain data.
//
// Tensors. A plan redistributes one tensor or several, each with its own request (dtype, shape,
// meshes, placements). All boxes of a plan have the same number of dims: that of the tensor with
// the most, at least 1. A tensor with fewer has leading dims of extent 1, so a 0-d tensor has shape
// (1). The ranks are those of all tensors. A series of tensors (core/plan/series.h) can take the
// place of one; executors take the plan that written_out() makes of it.
//
// Buffers. Each belongs to a tensor and has its dtype. Source and destination of every tensor come
// first, in turn, so that 0 and 1 are those of the first tensor; then the temporaries. A buffer has
// a local shape per rank (none if the rank does not have it), dense row-major. Every element of a
// buffer is written at most once (of a source: never), so the only hazard is a read before the
// write. Data is moved and folded only within its tensor.
//
// Steps. A step is one phase over many ranks; a rank's *part* of it is what names that rank.
// Running the steps one by one in listed order is correct. Dependencies hold per rank: a rank
// starts its part when its own parts of all steps in `after` are done (steps in which it has no
// part do not count). `after` names only earlier steps, ascending.
//
// Streams. A step runs on one of the plan's streams, each with communicators of its own. Where
// steps need communicators (NCCL), those of one stream run one after the other on a rank, in listed
// order, and those of different streams overlap as their dependencies allow.
//
// Stages. If the job's tensors have an order (core/layout/stages.h), a step works on tensors of one
// stage, and the dependencies of the steps enforce that order on every rank.
//
// Boxes. A move copies a box of one buffer to a box of equal extents in another, both in local
// coordinates. Ranks are written as slots: positions in Plan::ranks. 10^6 messages of one 2-d box
// pair take 72 MB.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/base/ids.h"
#include "core/layout/request.h"
#include "core/layout/stages.h"
#include "core/plan/buffer.h"

namespace reshard {

// The buffers of the first tensor, in most plans the only one.
inline constexpr BufferId kSourceBuffer{0};
inline constexpr BufferId kDestinationBuffer{1};

// With 32 thread blocks each they fit on an H100 (132 multiprocessors); on smaller GPUs
// they get fewer.
inline constexpr std::int32_t kMaxStreams = 4;

// Copies the box of `source` at source_lo to the box of `destination` at destination_lo. Extents >
// 0.
struct Move {
  BufferId source, destination;
  DimVector source_lo, destination_lo, extents;
  friend bool operator==(const Move&, const Move&) = default;
};

// Many moves in compact form: 8 bytes each, and 24 per dim.
class MoveList {
 public:
  MoveList() : MoveList(1) {}
  explicit MoveList(int dims) : dims_(dims) {}
  int dims() const { return dims_; }
  std::size_t size() const { return buffers_.size(); }
  Move operator[](std::size_t i) const;
  void push_back(const Move& move);
  void reserve(std::size_t moves);
  std::int64_t elements(std::size_t i) const;  // volume of move i
  std::int64_t source_lo(std::size_t i, int d) const { return at(i, d).source_lo; }
  std::int64_t extent(std::size_t i, int d) const { return at(i, d).extent; }
  BufferId source(std::size_t i) const { return buffers_[i].source; }
  friend bool operator==(const MoveList&, const MoveList&) = default;

 private:
  struct Ends {
    BufferId source, destination;
    friend bool operator==(const Ends&, const Ends&) = default;
  };
  struct Coordinates {
    std::int64_t source_lo, destination_lo, extent;
    friend bool operator==(const Coordinates&, const Coordinates&) = default;
  };
  const Coordinates& at(std::size_t i, int d) const {
    return coordinates_[i * to_index(dims_) + to_index(d)];
  }
  int dims_;
  std::vector<Ends> buffers_;
  std::vector<Coordinates> coordinates_;  // `dims_` per move
};

// Throws InputError if a step's list is full, with kMaxMoves moves.
void check_size(const MoveList& moves);

// Moves [first, first + count) of the step's list.
struct MoveRange {
  std::uint32_t first = 0, count = 0;
  friend bool operator==(const MoveRange&, const MoveRange&) = default;
};

// Calls visit(move) for the moves of a range, in order.
template <class Visit>
void for_each_move(const MoveList& moves, MoveRange range, Visit&& visit) {
  for (std::size_t i = range.first; i < std::size_t{range.first} + range.count; ++i)
    visit(moves[i]);
}

// Local copies. Parts ascend by slot; all moves of one slot are one part.
struct CopyStep {
  struct SlotMoves {
    Slot slot;
    MoveRange moves;
    friend bool operator==(const SlotMoves&, const SlotMoves&) = default;
  };
  std::vector<SlotMoves> parts;
  MoveList moves;
  friend bool operator==(const CopyStep&, const CopyStep&) = default;

  std::string_view kind_text() const { return "copy"; }
  BufferId any_buffer() const { return moves.source(0); }
  bool is_empty() const { return parts.empty(); }
  template <class Visit>
  void for_each_slot(Visit&& visit) const {
    for (const SlotMoves& part : parts) visit(part.slot);
  }
};

// Boxes to set to zero: padding that a collective sends and no rank uses, and what S->P(sum) leaves
// to other ranks. Parts ascend by slot; a slot can have several.
struct FillStep {
  struct SlotFill {
    Slot slot;
    BufferId buffer;
    Box box;
    friend bool operator==(const SlotFill&, const SlotFill&) = default;
  };
  std::vector<SlotFill> parts;
  friend bool operator==(const FillStep&, const FillStep&) = default;

  std::string_view kind_text() const { return "fill"; }
  BufferId any_buffer() const { return parts.front().buffer; }
  bool is_empty() const { return parts.empty(); }
  template <class Visit>
  void for_each_slot(Visit&& visit) const {
    for (const SlotFill& part : parts) visit(part.slot);
  }
};

// Point-to-point messages, all in flight at once. Ascending by (source, destination), at most one
// per pair, never from a rank to itself, never empty. A message is all of its moves, in order; the
// executor packs them.
struct ExchangeStep {
  struct Message {
    Slot source, destination;
    MoveRange moves;
    friend bool operator==(const Message&, const Message&) = default;
  };
  std::vector<Message> messages;
  MoveList moves;
  friend bool operator==(const ExchangeStep&, const ExchangeStep&) = default;

  std::string_view kind_text() const { return "exchange"; }
  BufferId any_buffer() const { return moves.source(0); }
  bool is_empty() const { return messages.empty(); }
  template <class Visit>
  void for_each_slot(Visit&& visit) const {
    for (const Message& message : messages) {
      visit(message.source);
      visit(message.destination);
    }
  }
};

enum class CollectiveKind : std::uint8_t { AllGather, ReduceScatter, AllReduce, AllToAll };
std::string_view text(CollectiveKind kind);

// Operands. A group's input is one box of each member's `input` buffer, its output one box of each
// member's `output`; both are at the same local coordinates on all members, by default the whole
// buffer. Block i of an operand is the i-th of n equal parts along `*_dim`; all dims before that
// have extent 1.
//
// Meaning, for a group g_0 .. g_{n-1}, in the order written:
//   all_gather      output of each member: block i = input of g_i
//   reduce_scatter  output of g_i = fold over j = 0..n-1 in order of block i of g_j's input
//   all_reduce      output of each = fold over j in order of g_j's input
//   all_to_all      output of g_i: block j = block i of g_j's input
// A fold is a left fold, rounded to the dtype after each operation, then divided by `divisor`
// (once, if > 1). Within a group all inputs have one shape and all outputs have one shape; groups
// are disjoint, of equal size n >= 2, and have at least one element.
struct CollectiveStep {
  CollectiveKind kind;
  ReduceOp op = ReduceOp::Sum;  // reducing kinds; never Avg
  std::int64_t divisor = 1;     // reducing kinds
  BufferId input, output;
  int input_dim = 0;   // dim along which the input has its blocks (reduce_scatter, all_to_all)
  int output_dim = 0;  // dim along which the output has its blocks (all_gather, all_to_all)
  std::int32_t group_size = 0;
  std::vector<Slot> members = {};  // group after group
  // Operands by group; both empty if they are whole buffers.
  std::vector<Box> input_boxes = {}, output_boxes = {};
  std::span<const Slot> group(std::size_t g) const {
    return std::span(members).subspan(g * to_index(group_size), to_index(group_size));
  }
  std::size_t group_count() const { return members.size() / to_index(group_size); }
  friend bool operator==(const CollectiveStep&, const CollectiveStep&) = default;

  std::string_view kind_text() const { return text(kind); }
  BufferId any_buffer() const { return input; }
  bool is_empty() const { return members.empty(); }
  template <class Visit>
  void for_each_slot(Visit&& visit) const {
    for (Slot slot : members) visit(slot);
  }
};

// destination box = (operand 0 op operand 1 op ...) / divisor; all boxes have the same extents and
// are on one rank. Parts ascend by slot; a slot can have several. R -> P(sum) has one operand and a
// divisor.
struct ReduceStep {
  struct Operand {
    BufferId buffer;
    DimVector lo;
    friend bool operator==(const Operand&, const Operand&) = default;
  };
  struct SlotFold {
    Slot slot;
    BufferId destination;
    DimVector destination_lo, extents;
    std::uint32_t first_operand, operand_count;  // >= 1
    friend bool operator==(const SlotFold&, const SlotFold&) = default;
  };
  ReduceOp op = ReduceOp::Sum;  // never Avg
  std::int64_t divisor = 1;
  std::vector<SlotFold> parts;
  std::vector<Operand> operands;
  friend bool operator==(const ReduceStep&, const ReduceStep&) = default;

  std::string_view kind_text() const { return "reduce"; }
  BufferId any_buffer() const { return parts.front().destination; }
  bool is_empty() const { return parts.empty(); }
  template <class Visit>
  void for_each_slot(Visit&& visit) const {
    for (const SlotFold& part : parts) visit(part.slot);
  }
};

using StepBody = std::variant<CopyStep, FillStep, ExchangeStep, CollectiveStep, ReduceStep>;

struct Step {
  StepBody body;
  std::vector<StepId> after;  // ascending, all earlier
  // Mesh axes along which the step works, for reports; empty if none in particular.
  std::vector<int> axes;
  std::int32_t stream = 0;  // of the plan's, 0 .. kMaxStreams - 1
  friend bool operator==(const Step&, const Step&) = default;
};

struct Plan {
  IndexVector<TensorId, Request> tensors;  // at least one
  std::string planner;
  IndexVector<Slot, Rank> ranks;  // ascending: those of all tensors
  IndexVector<BufferId, Buffer> buffers;
  IndexVector<StepId, Step> steps;
  // Whether executors may free a rank's source after the last step that reads it, and need not
  // allocate destinations before the first step that writes them. Does not change the values.
  bool frees_sources = false;
  Stages stages;  // empty: all tensors at once

  // A plan without steps; its source and destination buffers have the shapes of the requests.
  Plan(Request request, std::string planner);
  Plan(std::vector<Request> requests, std::string planner);

  int dims() const { return buffers[0].dims(); }
  std::size_t slot_count() const { return ranks.size(); }
  Slot slot_of(Rank rank) const;  // the rank must be in `ranks`
  Rank rank_of(Slot slot) const { return ranks[slot]; }
  const Buffer& buffer(BufferId id) const { return buffers[id]; }
  Buffer& buffer(BufferId id) { return buffers[id]; }
  const Request& request(TensorId tensor) const { return tensors[tensor]; }
  const Request& request(BufferId id) const { return request(buffer(id).tensor()); }
  // The dim of the buffer's boxes that counts the tensors of a series; none without a series.
  std::optional<int> series_dim(BufferId id) const {
    const Request& of = request(id);
    return of.tensors() > 1 ? std::optional(dims() - of.shape().size()) : std::nullopt;
  }
  // How many boxes the move consists of: one per tensor, if it is of a series.
  std::int64_t boxes_of(const MoveList& moves, std::size_t i) const {
    std::optional<int> dim = series_dim(moves.source(i));
    return dim ? moves.extent(i, *dim) : 1;
  }
  // The only tensor's request; CheckFailure if there are several.
  const Request& request() const;
  DType dtype(BufferId id) const { return request(id).dtype(); }
  std::int64_t element_bytes(BufferId id) const { return size_bytes(dtype(id)); }
  // Bytes of the buffer on this slot; 0 if it does not have the buffer.
  std::int64_t buffer_bytes(BufferId id, Slot slot) const {
    return buffer(id).elements(slot) * element_bytes(id);
  }
  // `first`: for a series, the first of its tensors that the temporary is for.
  BufferId add_temporary(TensorId tensor = TensorId{0}, std::int64_t first = 0);
  StepId add_step(StepBody body, std::vector<StepId> after, std::vector<int> axes = {});
};

// Calls visit(tensor, its request) in order.
template <class Visit>
void for_each_tensor(const IndexVector<TensorId, Request>& tensors, Visit&& visit) {
  for (std::size_t t = 0; t < tensors.size(); ++t) visit(static_cast<TensorId>(t), tensors[t]);
}

// Request::text of every tensor, with "; " between them; in a large job, only of the first few.
std::string requests_text(const Plan& plan);
// Request::text of one tensor; if there are several, "tensor 1, f32[..] ..".
std::string tensor_text(const IndexVector<TensorId, Request>& tensors, TensorId tensor);

inline constexpr BufferId source_of(TensorId tensor) {
  return BufferId{2 * static_cast<std::int32_t>(tensor)};
}
inline constexpr BufferId destination_of(TensorId tensor) {
  return BufferId{2 * static_cast<std::int32_t>(tensor) + 1};
}

// The shape in which a tensor is planned among tensors of up to `dims` dims: with leading extents
// of 1.
Shape plan_shape(const Shape& shape, int dims);
// The same if it is planned alone: (1) for 0-d, else unchanged.
inline Shape plan_shape(const Shape& shape) {
  return plan_shape(shape, shape.size() == 0 ? 1 : shape.size());
}

// A box of a tensor's shard in the plan's dims, `dims` of them.
Box plan_box(const Box& box, int dims);

// The boxes that a collective's group reads and writes on each of its members.
Box input_of(const Plan& plan, const CollectiveStep& step, std::size_t group);
Box output_of(const Plan& plan, const CollectiveStep& step, std::size_t group);
// Block i of n of an operand, along `dim`.
Box block_of(const Box& operand, int dim, std::int64_t i, std::int64_t n);

// The body of a step of one kind; null for all other kinds.
inline const CollectiveStep* collective_of(const Step& step) {
  return std::get_if<CollectiveStep>(&step.body);
}
inline const ExchangeStep* exchange_of(const Step& step) {
  return std::get_if<ExchangeStep>(&step.body);
}
inline ExchangeStep* exchange_of(Step& step) { return std::get_if<ExchangeStep>(&step.body); }
inline const CopyStep* copy_of(const Step& step) { return std::get_if<CopyStep>(&step.body); }
inline const FillStep* fill_of(const Step& step) { return std::get_if<FillStep>(&step.body); }

// "copy", "fill", "exchange", "reduce", "all_gather", "reduce_scatter", "all_reduce", "all_to_all".
inline std::string_view kind_text(const Step& step) {
  return std::visit([](const auto& body) { return body.kind_text(); }, step.body);
}

// Whether no rank has a part in it.
inline bool is_empty(const StepBody& body) {
  return std::visit([](const auto& of_kind) { return of_kind.is_empty(); }, body);
}

// Calls visit(slot) for every slot that the step names, in no particular order, some more than
// once.
template <class Visit>
void for_each_slot(const Step& step, Visit&& visit) {
  std::visit([&](const auto& body) { body.for_each_slot(visit); }, step.body);
}

// One of the buffers that the step uses; the step must not be empty.
inline BufferId any_buffer(const Step& step) {
  return std::visit([](const auto& body) { return body.any_buffer(); }, step.body);
}

// Whether bytes move between ranks in it.
inline bool communicates(const Step& step) {
  return exchange_of(step) != nullptr || collective_of(step) != nullptr;
}

// How many streams the plan's steps are on: the highest number among them plus 1, at least 1.
std::int32_t stream_count(const Plan& plan);

// Slots with a part in the step, ascending, each once.
std::vector<Slot> slots_of(const Step& step);

// The stage of every step, 0 if the plan has none. No step may be empty.
IndexVector<StepId, std::int32_t> stage_of_steps(const Plan& plan);

}  // namespace reshard
