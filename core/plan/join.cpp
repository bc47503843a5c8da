// SPDX-License-Identifier: BSD-3-Clause
// Joins plans by renumbering: slots by rank, buffers with the sources and destinations of all
// tensors first, steps in the order of the plans. Boxes get leading dims of extent 1 if their plan
// has fewer dims than the joined one.
#include <algorithm>

#include "core/base/errors.h"
#include "core/plan/join.h"
#include "core/plan/streams.h"

namespace reshard {
namespace {

class Joiner {
 public:
  Joiner(const PlanOfTensors& part, Plan& into) : from_(*part.plan), into_(into) {
    for (Rank rank : from_.ranks) slots_.push_back(into.slot_of(rank));
    first_step_ = static_cast<std::int32_t>(into.steps.size());
    for (const Buffer& buffer : from_.buffers) {
      TensorId tensor = part.tensors[to_index(buffer.tensor())];
      if (buffer.role() != BufferRole::Temporary) {
        bool source = buffer.role() == BufferRole::Source;
        buffers_.push_back(source ? source_of(tensor) : destination_of(tensor));
        continue;
      }
      buffers_.push_back(into.add_temporary(tensor, buffer.first_of_series()));
      for (std::size_t s = 0; s < slots_.size(); ++s)
        if (auto slot = static_cast<Slot>(s); buffer.exists(slot))
          into.buffer(buffers_.back()).set_shape(slots_[s], shape(buffer.shape(slot)));
    }
  }

  void run() {
    for (const Step& step : from_.steps) {
      std::vector<StepId> after = step.after;
      for (StepId& id : after) id = StepId{first_step_ + static_cast<std::int32_t>(id)};
      into_.add_step(
          std::visit([this](const auto& body) { return StepBody(joined(body)); }, step.body),
          std::move(after), step.axes);
    }
  }

 private:
  Slot slot(Slot slot) const { return slots_[to_index(slot)]; }
  BufferId buffer(BufferId id) const { return buffers_[to_index(id)]; }
  Shape shape(const Shape& shape) const { return plan_shape(shape, into_.dims()); }
  DimVector lo(const DimVector& lo) const {
    DimVector out(into_.dims() - lo.size(), 0);
    for (std::int64_t at : lo) out.push_back(at);
    return out;
  }
  Box box(const Box& box) const { return {lo(box.lo), shape(box.hi)}; }
  int dim(int d) const { return d + into_.dims() - from_.dims(); }

  MoveList moves(const MoveList& list) const {
    MoveList out(into_.dims());
    out.reserve(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      Move move = list[i];
      out.push_back({buffer(move.source), buffer(move.destination), lo(move.source_lo),
                     lo(move.destination_lo), shape(move.extents)});
    }
    return out;
  }

  CopyStep joined(const CopyStep& step) const {
    CopyStep out{step.parts, moves(step.moves)};
    for (CopyStep::SlotMoves& part : out.parts) part.slot = slot(part.slot);
    return out;
  }
  FillStep joined(const FillStep& step) const {
    FillStep out;
    for (const FillStep::SlotFill& part : step.parts)
      out.parts.push_back({slot(part.slot), buffer(part.buffer), box(part.box)});
    return out;
  }
  ExchangeStep joined(const ExchangeStep& step) const {
    ExchangeStep out{step.messages, moves(step.moves)};
    for (ExchangeStep::Message& message : out.messages) {
      message.source = slot(message.source);
      message.destination = slot(message.destination);
    }
    return out;
  }
  CollectiveStep joined(CollectiveStep step) const {
    step.input = buffer(step.input);
    step.output = buffer(step.output);
    step.input_dim = dim(step.input_dim);
    step.output_dim = dim(step.output_dim);
    for (Slot& member : step.members) member = slot(member);
    for (std::vector<Box>* boxes : {&step.input_boxes, &step.output_boxes})
      for (Box& operand : *boxes) operand = box(operand);
    return step;
  }
  ReduceStep joined(ReduceStep step) const {
    for (ReduceStep::SlotFold& part : step.parts) {
      part.slot = slot(part.slot);
      part.destination = buffer(part.destination);
      part.destination_lo = lo(part.destination_lo);
      part.extents = shape(part.extents);
    }
    for (ReduceStep::Operand& operand : step.operands)
      operand = {buffer(operand.buffer), lo(operand.lo)};
    return step;
  }

  const Plan& from_;
  Plan& into_;
  std::vector<Slot> slots_;        // of `into`, by slot of `from`
  std::vector<BufferId> buffers_;  // of `into`, by buffer of `from`
  std::int32_t first_step_;
};

}  // namespace

Plan join(std::vector<Request> tensors, std::span<const PlanOfTensors> parts, std::string planner) {
  Plan out(std::move(tensors), std::move(planner));
  for (const PlanOfTensors& part : parts) Joiner(part, out).run();
  out.frees_sources = std::all_of(parts.begin(), parts.end(),
                                  [](const auto& part) { return part.plan->frees_sources; });
  return out;
}

Plan join(const std::vector<Plan>& plans) {
  RESHARD_CHECK(!plans.empty(), "a join of no plans");
  std::vector<Request> requests;
  std::vector<PlanOfTensors> parts;
  Stages groups;
  for (const Plan& plan : plans) {
    PlanOfTensors& part = parts.emplace_back(PlanOfTensors{&plan, {}});
    add_groups(groups, plan.stages, plan.tensors.size(), requests.size());
    for (const Request& request : plan.tensors) {
      part.tensors.push_back(id_of<TensorId>(requests.size()));
      requests.push_back(request);
    }
  }
  bool same = std::all_of(plans.begin(), plans.end(),
                          [&](const Plan& plan) { return plan.planner == plans[0].planner; });
  Plan out = join(std::move(requests), parts, same ? plans[0].planner : "joined");
  out.stages = stages_of(groups);
  assign_streams(out);
  return out;
}

}  // namespace reshard
