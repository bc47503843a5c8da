// SPDX-License-Identifier: BSD-3-Clause
// Checks that every step is well formed (plan.h).
#include "core/proof/proof.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>

namespace reshard {
namespace {

using StageOfTensors = IndexVector<TensorId, std::int32_t>;

// Checks one step; `what_` is its first fault and `wrong_part_` the part that has it.
class StepCheck {
 public:
  // `stages`: those of the plan's tensors.
  StepCheck(const Plan& plan, std::int32_t step, const StageOfTensors& stages)
      : plan_(plan), step_(step), stages_(stages) {}

  std::optional<Refutation> run() {
    const Step& step = plan_.steps[step_];
    for (std::size_t i = 0; i < step.after.size(); ++i) {
      auto id = static_cast<std::int32_t>(step.after[i]);
      if (id < 0 || id >= step_)
        fail(fmt::format("depends on step {}, which is not an earlier one", id));
      if (i > 0 && step.after[i] <= step.after[i - 1]) fail("names its dependencies out of order");
    }
    std::visit([&](const auto& body) { check(body); }, step.body);
    if (what_.empty()) return std::nullopt;
    return Refutation{StepId{step_}, fmt::format("step {} ({}) {}", step_, kind_text(step), what_),
                      wrong_part_};
  }

 private:
  void fail(std::string what) {
    if (!what_.empty()) return;
    what_ = std::move(what);
    wrong_part_ = part_;
  }
  int rank(Slot slot) const { return to_int(plan_.ranks[slot]); }

  bool check_slot(Slot slot) {
    if (slot >= 0 && to_index(slot) < plan_.slot_count()) return true;
    fail("names a rank that is not in the plan");
    return false;
  }
  bool check_buffer(BufferId id, Slot slot) {
    if (static_cast<std::int32_t>(id) < 0 || to_index(id) >= plan_.buffers.size())
      fail(fmt::format("names buffer {}, which does not exist", static_cast<std::int32_t>(id)));
    else if (!plan_.buffer(id).exists(slot))
      fail(fmt::format("names buffer {} on rank {}, which does not have it",
                       static_cast<std::int32_t>(id), rank(slot)));
    else
      return note_stage(id);
    return false;
  }
  // All buffers of a step must be of tensors of one stage.
  bool note_stage(BufferId id) {
    std::int32_t stage = stages_[plan_.buffer(id).tensor()];
    if (stage_ < 0) stage_ = stage;
    if (stage == stage_) return true;
    fail(fmt::format("works on tensors of stages {} and {}", stage_, stage));
    return false;
  }
  bool check_box(BufferId id, Slot slot, const DimVector& lo, const DimVector& extents) {
    if (!check_buffer(id, slot)) return false;
    if (lo.size() != plan_.dims() || extents.size() != plan_.dims()) {
      fail("has boxes with other dims than the plan");
      return false;
    }
    for (int d = 0; d < plan_.dims(); ++d) {
      // Ordered so that nothing overflows: lo and extent are known to be at most the buffer's
      // extent before they are combined.
      std::int64_t limit = plan_.buffer(id).extent(slot, d);
      if (extents[d] >= 1 && lo[d] >= 0 && lo[d] <= limit && extents[d] <= limit - lo[d]) continue;
      fail(fmt::format(
          "has a box at ({}) of extents ({}) outside buffer {} of shape ({}) on rank {}", text(lo),
          text(extents), static_cast<std::int32_t>(id), text(plan_.buffer(id).shape(slot)),
          rank(slot)));
      return false;
    }
    return true;
  }
  // For a buffer of a box that was checked.
  bool check_target(BufferId id) {
    if (plan_.buffer(id).role() != BufferRole::Source) return true;
    fail("writes the source buffer");
    return false;
  }
  bool check_tensors(BufferId from, BufferId to) {
    if (plan_.buffer(from).tensor() == plan_.buffer(to).tensor()) return true;
    fail(fmt::format("moves buffer {} into buffer {} of another tensor",
                     static_cast<std::int32_t>(from), static_cast<std::int32_t>(to)));
    return false;
  }
  void check_moves(const MoveList& moves, MoveRange range, std::uint32_t& next, Slot from,
                   Slot to) {
    if (range.first != next || range.count == 0 || range.count > moves.size() - next)
      return fail("has an empty or overlapping list of boxes");
    next += range.count;
    for (std::uint32_t i = range.first; i < next; ++i) {
      Move move = moves[i];
      if (!check_box(move.source, from, move.source_lo, move.extents) ||
          !check_box(move.destination, to, move.destination_lo, move.extents) ||
          !check_target(move.destination) || !check_tensors(move.source, move.destination))
        return;
    }
  }

  void check(const CopyStep& step) {
    if (step.parts.empty()) fail("is empty");
    if (step.moves.dims() != plan_.dims()) return fail("has boxes with other dims than the plan");
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < step.parts.size() && what_.empty(); ++i) {
      part_ = i;
      if (!check_slot(step.parts[i].slot)) return;
      if (i > 0 && step.parts[i].slot <= step.parts[i - 1].slot)
        return fail("lists its ranks out of order");
      check_moves(step.moves, step.parts[i].moves, next, step.parts[i].slot, step.parts[i].slot);
    }
    part_.reset();
    if (next != step.moves.size()) fail("has boxes that belong to no rank");
  }

  void check(const FillStep& step) {
    if (step.parts.empty()) fail("is empty");
    for (std::size_t i = 0; i < step.parts.size() && what_.empty(); ++i) {
      part_ = i;
      const FillStep::SlotFill& part = step.parts[i];
      if (!check_slot(part.slot)) return;
      if (i > 0 && part.slot < step.parts[i - 1].slot) return fail("lists its ranks out of order");
      if (check_box(part.buffer, part.slot, part.box.lo, part.box.extents()))
        check_target(part.buffer);
    }
  }

  void check(const ExchangeStep& step) {
    if (step.messages.empty()) fail("is empty");
    if (step.moves.dims() != plan_.dims()) return fail("has boxes with other dims than the plan");
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < step.messages.size() && what_.empty(); ++i) {
      part_ = i;
      const ExchangeStep::Message& message = step.messages[i];
      if (!check_slot(message.source) || !check_slot(message.destination)) return;
      if (message.source == message.destination)
        return fail(fmt::format("has a message from rank {} to itself", rank(message.source)));
      if (i > 0) {
        const ExchangeStep::Message& before = step.messages[i - 1];
        if (std::pair(message.source, message.destination) <=
            std::pair(before.source, before.destination))
          return fail(fmt::format("has its message from rank {} to rank {} out of order or twice",
                                  rank(message.source), rank(message.destination)));
      }
      check_moves(step.moves, message.moves, next, message.source, message.destination);
    }
    part_.reset();
    if (next != step.moves.size()) fail("has boxes that belong to no message");
  }

  void check_operator(ReduceOp op, std::int64_t divisor, DType dtype) {
    if (op == ReduceOp::Avg) fail("reduces by avg, which a plan writes as sum with a divisor");
    if (!can_reduce(op, dtype))
      fail(fmt::format("reduces by {}, which {} does not support", text(op), text(dtype)));
    if (divisor < 1 || divisor > kMaxBytes) fail("has a divisor below 1 or above 2^62");
    if (divisor > 1 && !can_divide(dtype)) fail(fmt::format("divides {}", text(dtype)));
  }

  void check(const ReduceStep& step) {
    if (step.parts.empty()) fail("is empty");
    std::size_t next = 0;
    for (std::size_t i = 0; i < step.parts.size() && what_.empty(); ++i) {
      part_ = i;
      const ReduceStep::SlotFold& part = step.parts[i];
      if (!check_slot(part.slot)) return;
      if (i > 0 && part.slot < step.parts[i - 1].slot) return fail("lists its ranks out of order");
      if (part.first_operand != next || part.operand_count == 0 ||
          part.operand_count > step.operands.size() - next)
        return fail("has an empty or overlapping list of operands");
      next += part.operand_count;
      if (!check_box(part.destination, part.slot, part.destination_lo, part.extents) ||
          !check_target(part.destination))
        return;
      if (part.operand_count > 1 || step.divisor != 1)
        check_operator(step.op, step.divisor, plan_.dtype(part.destination));
      for (std::size_t k = part.first_operand; k < next; ++k)
        if (!check_box(step.operands[k].buffer, part.slot, step.operands[k].lo, part.extents) ||
            !check_tensors(step.operands[k].buffer, part.destination))
          return;
    }
    part_.reset();
    if (next != step.operands.size()) fail("has operands that belong to no fold");
  }

  // The extents of one of n blocks along `dim`; nullopt if the operand does not divide into equal
  // contiguous blocks.
  std::optional<Shape> block(const Shape& shape, int dim, std::int32_t n) {
    if (dim < 0 || dim >= plan_.dims()) {
      fail("lays blocks along a dim that does not exist");
      return std::nullopt;
    }
    for (int d = 0; d < dim; ++d)
      if (shape[d] != 1) {
        fail(fmt::format(
            "lays blocks along dim {} of a buffer of shape ({}), where they are not contiguous",
            dim, text(shape)));
        return std::nullopt;
      }
    if (shape[dim] % n != 0) {
      fail(fmt::format("cuts extent {} into {} equal blocks", shape[dim], n));
      return std::nullopt;
    }
    Shape out = shape;
    out[dim] /= n;
    return out;
  }

  void check_shapes(const CollectiveStep& step, const Shape& input, const Shape& output) {
    bool scatter =
        step.kind == CollectiveKind::ReduceScatter || step.kind == CollectiveKind::AllToAll;
    bool gather = step.kind == CollectiveKind::AllGather || step.kind == CollectiveKind::AllToAll;
    std::optional<Shape> from = scatter ? block(input, step.input_dim, step.group_size) : input;
    std::optional<Shape> to = gather ? block(output, step.output_dim, step.group_size) : output;
    if (!from || !to) return;
    if (*from != *to)
      fail(fmt::format("has blocks of shape ({}) in its input and ({}) in its output", text(*from),
                       text(*to)));
    if (element_count(*from) == 0) fail("moves no element");
  }

  void check(const CollectiveStep& step) {
    if (step.group_size < 2 || step.members.empty() ||
        step.members.size() % to_index(step.group_size) != 0)
      return fail("expects groups of at least 2 ranks, all of the same size");
    if (step.input_boxes.size() != step.output_boxes.size() ||
        (!step.input_boxes.empty() && step.input_boxes.size() != step.group_count()))
      return fail("has boxes for only some of its groups");
    std::set<Slot> seen;
    for (std::size_t g = 0; g < step.group_count() && what_.empty(); ++g) {
      part_ = g;
      std::span<const Slot> group = step.group(g);
      for (Slot slot : group) {
        if (!check_slot(slot)) return;
        if (!seen.insert(slot).second) return fail(fmt::format("names rank {} twice", rank(slot)));
        if (!check_operand(step.input, slot, group[0], step.input_boxes, g) ||
            !check_operand(step.output, slot, group[0], step.output_boxes, g))
          return;
      }
      if (!check_target(step.output) || !check_tensors(step.input, step.output)) return;
      bool reduces =
          step.kind == CollectiveKind::ReduceScatter || step.kind == CollectiveKind::AllReduce;
      if (reduces) check_operator(step.op, step.divisor, plan_.dtype(step.input));
      check_shapes(step, input_of(plan_, step, g).extents(), output_of(plan_, step, g).extents());
    }
  }

  // A member's operand: the group's box, or a whole buffer of the same shape on every member.
  bool check_operand(BufferId buffer, Slot slot, Slot first, const std::vector<Box>& boxes,
                     std::size_t group) {
    if (!check_buffer(buffer, slot)) return false;
    if (!boxes.empty()) return check_box(buffer, slot, boxes[group].lo, boxes[group].extents());
    if (plan_.buffer(buffer).shape(slot) == plan_.buffer(buffer).shape(first)) return true;
    fail(fmt::format("has buffers of different shapes on ranks {} and {} of one group", rank(first),
                     rank(slot)));
    return false;
  }

  const Plan& plan_;
  std::int32_t step_, stage_ = -1;
  const StageOfTensors& stages_;
  std::optional<std::size_t> part_, wrong_part_;
  std::string what_;
};

// Checks that the source's or destination's local shapes are those of the request.
std::optional<Refutation> check_request_buffer(const Plan& plan, BufferId id,
                                               const Layout& layout) {
  std::vector<bool> holds(plan.slot_count(), false);
  auto refuted = [&](std::size_t slot) {
    return Refutation{std::nullopt,
                      fmt::format("buffer {} on rank {} does not have the request's shape",
                                  static_cast<std::int32_t>(id), to_int(plan.ranks[slot]))};
  };
  for (std::int32_t position = 0; position < layout.mesh().size(); ++position) {
    Slot slot = plan.slot_of(layout.mesh().rank_at(position));
    holds[to_index(slot)] = true;
    if (!plan.buffer(id).exists(slot) ||
        plan.buffer(id).shape(slot) != plan_shape(layout.local_shape(position), plan.dims()))
      return refuted(to_index(slot));
  }
  for (std::size_t slot = 0; slot < plan.slot_count(); ++slot)
    if (!holds[slot] && plan.buffer(id).exists(static_cast<Slot>(slot))) return refuted(slot);
  return std::nullopt;
}

// Every tensor in one stage, and stages after earlier ones only.
std::optional<Refutation> check_stages(const Plan& plan) {
  auto refuted = [](std::size_t stage, std::string_view what) {
    return Refutation{std::nullopt, fmt::format("stage {} {}", stage, what)};
  };
  std::vector<bool> seen(plan.tensors.size(), false);
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    if (stage.tensors.empty()) return refuted(s, "has no tensors");
    for (std::size_t i = 0; i < stage.tensors.size(); ++i) {
      std::size_t tensor = to_index(stage.tensors[i]);
      if (tensor >= seen.size() || seen[tensor] ||
          (i > 0 && stage.tensors[i] <= stage.tensors[i - 1]))
        return refuted(s, "does not name tensors of the plan, ascending, each in one stage");
      seen[tensor] = true;
    }
    for (std::size_t i = 0; i < stage.after.size(); ++i)
      if (stage.after[i] < 0 || to_index(stage.after[i]) >= s ||
          (i > 0 && stage.after[i] <= stage.after[i - 1]))
        return refuted(s, "does not come after earlier stages, ascending");
  }
  if (!plan.stages.empty() && std::find(seen.begin(), seen.end(), false) != seen.end())
    return Refutation{std::nullopt,
                      fmt::format("tensor {} is in no stage",
                                  std::find(seen.begin(), seen.end(), false) - seen.begin())};
  return std::nullopt;
}

}  // namespace

std::optional<Refutation> check_structure(const Plan& plan) {
  if (auto found = check_stages(plan)) return found;
  StageOfTensors stages = stage_of_tensors(plan.stages, plan.tensors.size());
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    TensorId tensor{static_cast<std::int32_t>(t)};
    const Request& request = plan.request(tensor);
    if (auto found = check_request_buffer(plan, source_of(tensor), request.source())) return found;
    if (auto found = check_request_buffer(plan, destination_of(tensor), request.destination()))
      return found;
  }
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    if (auto found = StepCheck(plan, static_cast<std::int32_t>(s), stages).run()) return found;
  return std::nullopt;
}

}  // namespace reshard
