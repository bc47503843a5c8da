// SPDX-License-Identifier: BSD-3-Clause
#include "core/planners/collectives/emit.h"

#include <algorithm>

#include "core/base/errors.h"
#include "core/moves/blocks.h"

namespace reshard {
namespace {

enum class Change : std::uint8_t {
  Relabel,
  Slice,
  Embed,
  Divide,
  AllGather,
  AllReduce,
  ReduceScatter,
  AllToAll
};

Change change_of(const Placement& from, const Placement& to) {
  if (from.is_shard_like()) {
    if (to.is_partial()) return Change::Embed;
    return to.is_shard_like() ? Change::AllToAll : Change::AllGather;
  }
  if (from.is_replicate()) {
    RESHARD_CHECK(!to.is_replicate(), "a transition must change its axes");
    return to.is_shard_like() ? Change::Slice : Change::Divide;
  }
  RESHARD_CHECK(!to.is_partial(), "no transition leads from Partial to Partial");
  return to.is_shard_like() ? Change::ReduceScatter : Change::AllReduce;
}

// What a transition does along the axes that have more than one rank.
struct Work {
  Change change = Change::Relabel;
  std::vector<int> axes;
  ReduceOp op = ReduceOp::Sum;
  std::int64_t divisor = 1;
};

Work work_of(const Layout& before, const Transition& transition) {
  Work work;
  for (int axis : transition.axes) {
    std::int32_t size = before.mesh().axis_size(axis);
    if (size == 1) continue;
    const Placement &from = before.placement(axis), &to = transition.next.placement(axis);
    Change change = change_of(from, to);
    RESHARD_CHECK(work.axes.empty() || change == work.change,
                  "a transition must change all of its axes in one way");
    work.change = change;
    work.axes.push_back(axis);
    // Addends of an average are made by copying, and folded by summing and dividing; those of a sum
    // are made by dividing.
    if (from.is_partial()) {
      work.op = from.op == ReduceOp::Avg ? ReduceOp::Sum : from.op;
      if (from.op == ReduceOp::Avg) work.divisor *= size;
    } else if (to.is_partial() && to.op == ReduceOp::Sum) {
      work.divisor *= size;
    }
  }
  if (work.change == Change::Divide && work.divisor == 1) work.change = Change::Relabel;
  return work;
}

CollectiveKind collective_kind(Change change) {
  switch (change) {
    case Change::AllGather:
      return CollectiveKind::AllGather;
    case Change::ReduceScatter:
      return CollectiveKind::ReduceScatter;
    case Change::AllReduce:
      return CollectiveKind::AllReduce;
    default:
      return CollectiveKind::AllToAll;
  }
}

class Emitter {
 public:
  Emitter(const Request& request, std::string planner, Explanation* explanation)
      : plan_(request, std::move(planner)),
        explanation_(explanation),
        mesh_(request.source().mesh()),
        before_(request.source()) {
    position_of_slot_.resize(plan_.slot_count());
    slot_of_position_.resize(plan_.slot_count());
    for (std::int32_t position = 0; position < mesh_.size(); ++position) {
      Slot slot = plan_.slot_of(mesh_.rank_at(position));
      slot_of_position_[to_index(position)] = slot;
      position_of_slot_[to_index(slot)] = position;
    }
  }

  // `last`: the result goes to the destination buffer.
  void apply(const Transition& transition, const Work& work, bool last) {
    Located after(transition.next);
    if (work.change != Change::Relabel) {
      BufferId target = last ? kDestinationBuffer : shard_buffer(after);
      std::vector<StepId> writers;
      if (work.change == Change::Slice)
        writers = slice(after, work, target, transition.why);
      else if (work.change == Change::Embed)
        writers = embed(after, work, target, transition.why);
      else if (work.change == Change::Divide)
        writers = divide(work, target, transition.why);
      else if (work.change == Change::AllReduce)
        writers = all_reduce(work, target, transition.why);
      else
        writers = move_blocks(after, work, target, transition.why);
      current_ = target;
      writers_ = std::move(writers);
    } else if (explanation_ != nullptr && before_.layout() != transition.next) {
      explanation_->add(transition.why + " (only the label changes)");
    }
    before_ = std::move(after);
  }

  Plan finish() {
    if (current_ == kSourceBuffer) {
      CopyStep copy;
      copy.moves = MoveList(plan_.dims());
      each_slot([&](Slot slot, std::int32_t) {
        if (plan_.buffer(kSourceBuffer).elements(slot) == 0) return;
        DimVector zero(plan_.dims());
        add_copies(copy, slot, [&](MoveList& moves) {
          moves.push_back({kSourceBuffer, kDestinationBuffer, zero, zero,
                           plan_.buffer(kSourceBuffer).shape(slot)});
        });
      });
      add(std::move(copy), {}, {},
          "every rank already holds what it needs: the source becomes the destination");
    }
    return std::move(plan_);
  }

 private:
  template <class F>
  void each_slot(F&& f) {
    for (std::size_t slot = 0; slot < position_of_slot_.size(); ++slot)
      f(static_cast<Slot>(slot), position_of_slot_[slot]);
  }

  // Adds the moves that `append` appends as the part of `slot`.
  template <class F>
  static void add_copies(CopyStep& copy, Slot slot, F&& append) {
    auto first = static_cast<std::uint32_t>(copy.moves.size());
    append(copy.moves);
    auto count = static_cast<std::uint32_t>(copy.moves.size()) - first;
    if (count > 0) copy.parts.push_back({slot, {first, count}});
  }

  // Adds the step unless it has no part. Returns the steps that write its output.
  std::vector<StepId> add(StepBody body, std::vector<StepId> after, const std::vector<int>& axes,
                          std::string_view why) {
    if (is_empty(body)) return {};
    StepId id = plan_.add_step(std::move(body), std::move(after), axes);
    if (explanation_ != nullptr) explanation_->add(id, std::string(why));
    return {id};
  }

  BufferId shard_buffer(const Located& layout) {
    BufferId id = plan_.add_temporary();
    each_slot([&](Slot slot, std::int32_t position) {
      plan_.buffer(id).set_shape(slot, layout.shape(position));
    });
    return id;
  }

  BufferId packed_buffer(const RankGroups& groups, const BlockSide& side,
                         const std::vector<Shape>& boxes) {
    BufferId id = plan_.add_temporary();
    for (std::size_t g = 0; g < boxes.size(); ++g) {
      if (element_count(boxes[g]) == 0) continue;
      Shape shape = packed_shape(groups, side, boxes[g], size_bytes(plan_.request().dtype()));
      for (std::int32_t i = 0; i < groups.size(); ++i)
        plan_.buffer(id).set_shape(slot_at(groups.position(g, i)), shape);
    }
    return id;
  }

  std::vector<StepId> slice(const Located& after, const Work& work, BufferId target,
                            std::string_view why) {
    CopyStep copy;
    copy.moves = MoveList(plan_.dims());
    copy.parts.reserve(plan_.slot_count());
    copy.moves.reserve(plan_.slot_count());
    ShardSlicer slicer(before_, after);
    each_slot([&](Slot slot, std::int32_t position) {
      add_copies(copy, slot,
                 [&](MoveList& moves) { slicer.slice(position, current_, target, moves); });
    });
    return add(std::move(copy), writers_, work.axes, why);
  }

  std::vector<StepId> embed(const Located& after, const Work& work, BufferId target,
                            std::string_view why) {
    std::vector<StepId> writers = slice(after, work, target, why);
    FillStep fill;
    std::vector<Box> zeros;
    ShardSlicer slicer(before_, after);
    each_slot([&](Slot slot, std::int32_t position) {
      slicer.push_rest(position, zeros);
      add_fills(fill, slot, target, zeros);
      zeros.clear();
    });
    std::vector<StepId> filled =
        add(std::move(fill), {}, work.axes, "zeros for elements that other ranks hold");
    writers.insert(writers.end(), filled.begin(), filled.end());
    return writers;
  }

  std::vector<StepId> divide(const Work& work, BufferId target, std::string_view why) {
    ReduceStep reduce;
    reduce.divisor = work.divisor;
    each_slot([&](Slot slot, std::int32_t position) {
      Shape shape = before_.shape(position);
      if (box_of(shape).empty()) return;
      DimVector zero(shape.size());
      reduce.parts.push_back(
          {slot, target, zero, shape, static_cast<std::uint32_t>(reduce.operands.size()), 1});
      reduce.operands.push_back({current_, zero});
    });
    return add(std::move(reduce), writers_, work.axes, why);
  }

  std::vector<StepId> all_reduce(const Work& work, BufferId target, std::string_view why) {
    RankGroups groups(mesh_, work.axes);
    CollectiveStep step{CollectiveKind::AllReduce,
                        work.op,
                        work.divisor,
                        current_,
                        target,
                        0,
                        0,
                        groups.size(),
                        {}};
    for (std::size_t g = 0; g < groups.bases.size(); ++g)
      if (!box_of(before_.shape(groups.bases[g])).empty()) add_members(groups, g, step);
    return add(std::move(step), writers_, work.axes, why);
  }

  // all_gather, reduce_scatter, all_to_all.
  std::vector<StepId> move_blocks(const Located& after, const Work& work, BufferId target,
                                  std::string_view why) {
    RankGroups groups(mesh_, work.axes);
    bool gathers = work.change == Change::AllGather,
         scatters = work.change == Change::ReduceScatter;
    BlockSide input{before_, after, gathers, scatters}, output{after, before_, scatters, gathers};
    std::vector<Shape> boxes = block_boxes(groups, input, output);
    int input_dim = direct_dim(groups, input, boxes),
        output_dim = direct_dim(groups, output, boxes);
    if ((input_dim < 0 && !input.whole) || (output_dim < 0 && !output.whole))
      check_block_count(groups);

    CollectiveStep step{collective_kind(work.change),
                        work.op,
                        work.divisor,
                        current_,
                        target,
                        std::max(input_dim, 0),
                        std::max(output_dim, 0),
                        groups.size(),
                        {}};
    std::vector<StepId> ready = writers_;
    if (input_dim < 0) {
      step.input = packed_buffer(groups, input, boxes);
      ready = pack(groups, input, boxes, step.input, work);
    }
    if (output_dim < 0) step.output = packed_buffer(groups, output, boxes);
    for (std::size_t g = 0; g < boxes.size(); ++g)
      if (element_count(boxes[g]) > 0) add_members(groups, g, step);
    BufferId packed = step.output;
    std::vector<StepId> writers = add(std::move(step), std::move(ready), work.axes, why);
    return output_dim < 0 ? unpack(groups, output, boxes, packed, target, std::move(writers), work)
                          : writers;
  }

  std::vector<StepId> pack(const RankGroups& groups, const BlockSide& side,
                           const std::vector<Shape>& boxes, BufferId packed, const Work& work) {
    CopyStep copy;
    copy.moves = MoveList(plan_.dims());
    reserve(copy, groups, side);
    FillStep fill;
    std::vector<Box> padding;
    BlockMover mover(groups, side);
    each_slot([&](Slot slot, std::int32_t position) {
      const Shape& box = boxes[groups.group_of[to_index(position)]];
      if (element_count(box) == 0) return;
      add_copies(copy, slot, [&](MoveList& moves) {
        mover.pack(position, box, current_, packed, moves, padding);
      });
      add_fills(fill, slot, packed, padding);
      padding.clear();
    });
    std::vector<StepId> writers = add(std::move(copy), writers_, work.axes,
                                      "packs the blocks of the collective that follows");
    std::vector<StepId> filled = add(std::move(fill), {}, work.axes,
                                     "pads blocks to the size of the largest in their group");
    writers.insert(writers.end(), filled.begin(), filled.end());
    return writers;
  }

  std::vector<StepId> unpack(const RankGroups& groups, const BlockSide& side,
                             const std::vector<Shape>& boxes, BufferId packed, BufferId target,
                             std::vector<StepId> ready, const Work& work) {
    CopyStep copy;
    copy.moves = MoveList(plan_.dims());
    reserve(copy, groups, side);
    BlockMover mover(groups, side);
    each_slot([&](Slot slot, std::int32_t position) {
      const Shape& box = boxes[groups.group_of[to_index(position)]];
      if (element_count(box) == 0) return;
      add_copies(copy, slot,
                 [&](MoveList& moves) { mover.unpack(position, box, packed, target, moves); });
    });
    return add(std::move(copy), std::move(ready), work.axes,
               "unpacks the collective's result without its padding");
  }

  void reserve(CopyStep& copy, const RankGroups& groups, const BlockSide& side) const {
    copy.parts.reserve(plan_.slot_count());
    copy.moves.reserve(
        std::min(kMaxMoves, plan_.slot_count() * (side.whole ? 1 : to_index(groups.size()))));
  }

  void add_members(const RankGroups& groups, std::size_t group, CollectiveStep& step) const {
    for (std::int32_t i = 0; i < groups.size(); ++i)
      step.members.push_back(slot_at(groups.position(group, i)));
  }

  Slot slot_at(std::int32_t position) const { return slot_of_position_[to_index(position)]; }

  Plan plan_;
  Explanation* explanation_;
  const Mesh& mesh_;
  Located before_;  // the layout of current_
  BufferId current_ = kSourceBuffer;
  std::vector<StepId> writers_;  // the steps that wrote current_
  std::vector<Slot> slot_of_position_;
  std::vector<std::int32_t> position_of_slot_;
};

}  // namespace

Plan emit_plan(const Request& request, std::string planner,
               const std::vector<Transition>& transitions, Explanation* explanation) {
  RESHARD_CHECK(request.same_mesh(), "transitions stay within one mesh");
  std::vector<Work> works;
  works.reserve(transitions.size());
  std::size_t last = transitions.size();
  const Layout* before = &request.source();
  for (std::size_t i = 0; i < transitions.size(); ++i) {
    works.push_back(work_of(*before, transitions[i]));
    if (works.back().change != Change::Relabel) last = i;
    before = &transitions[i].next;
  }
  RESHARD_CHECK(*before == request.destination(),
                "the last transition must end in the destination layout");

  Emitter emitter(request, std::move(planner), explanation);
  for (std::size_t i = 0; i < transitions.size(); ++i)
    emitter.apply(transitions[i], works[i], i == last);
  return emitter.finish();
}

}  // namespace reshard
