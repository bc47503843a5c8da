// SPDX-License-Identifier: BSD-3-Clause
#include "core/plan/written_out.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/errors.h"

namespace reshard {
namespace {

class Writer {
 public:
  Writer(const Plan& plan, const SeriesJob& job, Plan& out) : plan_(plan), job_(job), out_(out) {
    for (std::size_t b = 0; b < plan.buffers.size(); ++b) add_buffer(id_of<BufferId>(b));
  }

  CopyStep operator()(const CopyStep& step) {
    CopyStep out{step.parts, MoveList(out_.dims())};
    for (CopyStep::SlotMoves& part : out.parts)
      part.moves = moves(step.moves, part.moves, out.moves);
    return out;
  }
  ExchangeStep operator()(const ExchangeStep& step) {
    ExchangeStep out{step.messages, MoveList(out_.dims())};
    for (ExchangeStep::Message& message : out.messages)
      message.moves = moves(step.moves, message.moves, out.moves);
    return out;
  }
  FillStep operator()(const FillStep& step) {
    FillStep out;
    for (const FillStep::SlotFill& part : step.parts)
      for (std::int64_t i = 0; i < boxes_of(part.buffer, part.box.extents()); ++i)
        out.parts.push_back({part.slot,
                             buffer(part.buffer, part.box.lo, i),
                             {lo(part.buffer, part.box.lo), shape(part.buffer, part.box.hi)}});
    return out;
  }
  ReduceStep operator()(const ReduceStep& step) {
    ReduceStep out = step;
    for (ReduceStep::SlotFold& part : out.parts) {
      BufferId from = part.destination;
      part.destination = single(from);
      part.destination_lo = lo(from, part.destination_lo);
      part.extents = shape(from, part.extents);
    }
    for (ReduceStep::Operand& operand : out.operands)
      operand = {single(operand.buffer), lo(operand.buffer, operand.lo)};
    return out;
  }
  CollectiveStep operator()(const CollectiveStep& step) {
    CollectiveStep out = step;
    out.input = single(step.input);
    out.output = single(step.output);
    out.input_dim -= plan_.dims() - out_.dims();
    out.output_dim -= plan_.dims() - out_.dims();
    for (auto [boxes, of] :
         {std::pair(&out.input_boxes, step.input), {&out.output_boxes, step.output}})
      for (Box& box : *boxes) box = {lo(of, box.lo), shape(of, box.hi)};
    return out;
  }

 private:
  const std::vector<TensorId>& tensors_of(BufferId id) const {
    return job_.tensors[to_index(plan_.buffer(id).tensor())];
  }

  void add_buffer(BufferId id) {
    const Buffer& own = plan_.buffer(id);
    std::vector<BufferId>& to = buffers_.emplace_back();
    if (own.role() != BufferRole::Temporary) {
      for (TensorId tensor : tensors_of(id))
        to.push_back(own.role() == BufferRole::Source ? source_of(tensor) : destination_of(tensor));
      return;
    }
    const std::optional<int> dim = plan_.series_dim(id);
    std::int64_t boxes = 1;
    for (Slot slot = 0; dim && to_index(slot) < plan_.slot_count(); ++slot)
      boxes = std::max(boxes, own.extent(slot, *dim));
    for (std::int64_t i = 0; i < boxes; ++i) {
      to.push_back(out_.add_temporary(tensors_of(id)[to_index(own.first_of_series() + i)]));
      for (Slot slot = 0; to_index(slot) < plan_.slot_count(); ++slot)
        if (own.exists(slot) && (!dim || i < own.extent(slot, *dim)))
          out_.buffer(to.back()).set_shape(slot, shape(id, own.shape(slot)));
    }
  }

  // Without the dims of the plan that the tensors of the buffer do not have.
  DimVector tail(BufferId id, const DimVector& at, std::int64_t before) const {
    const Request& request = plan_.request(id);
    const int dims = request.shape().size() - (request.tensors() > 1 ? 1 : 0);
    DimVector out(out_.dims() - dims, before);
    for (int d = at.size() - dims; d < at.size(); ++d) out.push_back(at[d]);
    return out;
  }
  DimVector lo(BufferId id, const DimVector& at) const { return tail(id, at, 0); }
  Shape shape(BufferId id, const Shape& of) const { return tail(id, of, 1); }

  // How many a box is: one of each tensor.
  std::int64_t boxes_of(BufferId id, const Shape& extents) const {
    const std::optional<int> dim = plan_.series_dim(id);
    return dim ? extents[*dim] : 1;
  }
  BufferId buffer(BufferId id, const DimVector& at, std::int64_t i) const {
    const std::optional<int> dim = plan_.series_dim(id);
    return buffers_[to_index(id)][to_index(i + (dim ? at[*dim] : 0))];
  }
  BufferId single(BufferId id) const {
    RESHARD_CHECK(!plan_.series_dim(id), "a series that is folded or in a collective");
    return buffers_[to_index(id)].front();
  }

  MoveRange moves(const MoveList& list, MoveRange range, MoveList& out) const {
    auto first = static_cast<std::uint32_t>(out.size());
    for_each_move(list, range, [&](const Move& move) {
      for (std::int64_t i = 0; i < boxes_of(move.source, move.extents); ++i) {
        check_size(out);
        out.push_back({buffer(move.source, move.source_lo, i),
                       buffer(move.destination, move.destination_lo, i),
                       lo(move.source, move.source_lo), lo(move.destination, move.destination_lo),
                       shape(move.source, move.extents)});
      }
    });
    return {first, static_cast<std::uint32_t>(out.size()) - first};
  }

  const Plan& plan_;
  const SeriesJob& job_;
  Plan& out_;
  std::vector<std::vector<BufferId>> buffers_;  // by buffer of the plan: of every tensor
};

}  // namespace

Plan written_out(const Plan& plan, const JobInSeries& job) {
  Plan out(job.tensors, plan.planner);
  out.frees_sources = plan.frees_sources;
  out.stages = job.stages;
  Writer writer(plan, job.series, out);
  for (const Step& step : plan.steps) {
    StepBody body =
        std::visit([&](const auto& of_kind) { return StepBody(writer(of_kind)); }, step.body);
    StepId id = out.add_step(std::move(body), step.after, step.axes);
    out.steps[id].stream = step.stream;
  }
  return out;
}

}  // namespace reshard
