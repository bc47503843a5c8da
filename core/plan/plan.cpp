// SPDX-License-Identifier: BSD-3-Clause
#include "core/plan/plan.h"

#include <algorithm>
#include <map>

#include "core/base/errors.h"
#include "core/base/limits.h"

namespace reshard {

Move MoveList::operator[](std::size_t i) const {
  Move move{buffers_[i].source, buffers_[i].destination, DimVector(dims_), DimVector(dims_),
            DimVector(dims_)};
  const Coordinates* at = coordinates_.data() + i * to_index(dims_);
  for (int d = 0; d < dims_; ++d, ++at) {
    move.source_lo[d] = at->source_lo;
    move.destination_lo[d] = at->destination_lo;
    move.extents[d] = at->extent;
  }
  return move;
}

void MoveList::push_back(const Move& move) {
  buffers_.push_back({move.source, move.destination});
  const std::size_t used = coordinates_.size();
  coordinates_.resize(used + to_index(dims_));
  Coordinates* at = coordinates_.data() + used;
  for (int d = 0; d < dims_; ++d, ++at)
    *at = {move.source_lo[d], move.destination_lo[d], move.extents[d]};
}

void MoveList::reserve(std::size_t moves) {
  buffers_.reserve(moves);
  coordinates_.reserve(moves * to_index(dims_));
}

std::int64_t MoveList::elements(std::size_t i) const {
  const Coordinates* at = coordinates_.data() + i * to_index(dims_);
  std::int64_t count = 1;
  for (int d = 0; d < dims_; ++d) count *= at[d].extent;
  return count;
}

namespace {

void shape_buffer(Buffer& buffer, const Layout& layout, const Plan& plan) {
  for (std::int32_t position = 0; position < layout.mesh().size(); ++position)
    buffer.set_shape(plan.slot_of(layout.mesh().rank_at(position)),
                     plan_shape(layout.local_shape(position), buffer.dims()));
}

// An initializer list would copy the request.
std::vector<Request> only(Request&& request) {
  std::vector<Request> out;
  out.push_back(std::move(request));
  return out;
}

}  // namespace

void check_size(const MoveList& moves) {
  if (moves.size() >= kMaxMoves)
    throw InputError(
        "expected a request that sends at most 2^24 boxes, found more (use fewer ranks or runs)");
}

Shape plan_shape(const Shape& shape, int dims) {
  Shape out(dims - shape.size(), 1);
  for (std::int64_t extent : shape) out.push_back(extent);
  return out;
}

Plan::Plan(Request request, std::string planner_in)
    : Plan(only(std::move(request)), std::move(planner_in)) {}

Plan::Plan(std::vector<Request> requests, std::string planner_in)
    : tensors(std::move(requests)), planner(std::move(planner_in)), ranks(ranks_of(tensors)) {
  int dims = 1;
  for (const Request& request : tensors) dims = std::max(dims, request.shape().size());
  std::map<Digest, TensorId> known;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    TensorId tensor{static_cast<std::int32_t>(t)};
    auto [like, is_new] = known.try_emplace(tensors[t].fingerprint(), tensor);
    if (!is_new) {
      for (BufferId id : {source_of(like->second), destination_of(like->second)})
        buffers.push_back(buffer(id).of(tensor));
      continue;
    }
    for (BufferRole role : {BufferRole::Source, BufferRole::Destination}) {
      Buffer& buffer = buffers.emplace_back(role, tensor, dims, ranks.size());
      bool source = role == BufferRole::Source;
      shape_buffer(buffer, source ? tensors[t].source() : tensors[t].destination(), *this);
    }
  }
}

const Request& Plan::request() const {
  RESHARD_CHECK(tensors.size() == 1, "the request of a plan of several tensors");
  return tensors.front();
}

std::string requests_text(const Plan& plan) { return text_of(plan.tensors); }

std::string tensor_text(const IndexVector<TensorId, Request>& tensors, TensorId tensor) {
  std::string request = tensors[tensor].text();
  return tensors.size() == 1 ? request
                             : "tensor " + std::to_string(to_index(tensor)) + ", " + request;
}

Slot Plan::slot_of(Rank rank) const {
  // Ranks without gaps, the usual case, need no search.
  std::int64_t guess = std::int64_t{to_int(rank)} - to_int(ranks.front());
  if (guess >= 0 && guess < static_cast<std::int64_t>(ranks.size()) &&
      ranks[to_index(guess)] == rank)
    return static_cast<Slot>(guess);
  auto it = std::lower_bound(ranks.begin(), ranks.end(), rank);
  RESHARD_CHECK(it != ranks.end() && *it == rank,
                "rank " + std::to_string(to_int(rank)) + " is not in the plan");
  return static_cast<Slot>(it - ranks.begin());
}

BufferId Plan::add_temporary(TensorId tensor, std::int64_t first) {
  buffers.emplace_back(BufferRole::Temporary, tensor, dims(), ranks.size(), first);
  return BufferId{static_cast<std::int32_t>(buffers.size()) - 1};
}

StepId Plan::add_step(StepBody body, std::vector<StepId> after, std::vector<int> axes) {
  steps.push_back({std::move(body), std::move(after), std::move(axes)});
  return StepId{static_cast<std::int32_t>(steps.size()) - 1};
}

Box plan_box(const Box& box, int dims) {
  Box out{DimVector(dims - box.dims(), 0), DimVector(dims - box.dims(), 1)};
  for (int d = 0; d < box.dims(); ++d) {
    out.lo.push_back(box.lo[d]);
    out.hi.push_back(box.hi[d]);
  }
  return out;
}

Box input_of(const Plan& plan, const CollectiveStep& step, std::size_t group) {
  if (!step.input_boxes.empty()) return step.input_boxes[group];
  return box_of(plan.buffer(step.input).shape(step.group(group)[0]));
}

Box output_of(const Plan& plan, const CollectiveStep& step, std::size_t group) {
  if (!step.output_boxes.empty()) return step.output_boxes[group];
  return box_of(plan.buffer(step.output).shape(step.group(group)[0]));
}

Box block_of(const Box& operand, int dim, std::int64_t i, std::int64_t n) {
  Box out = operand;
  std::int64_t length = operand.extent(dim) / n;
  out.lo[dim] = operand.lo[dim] + i * length;
  out.hi[dim] = out.lo[dim] + length;
  return out;
}

std::string_view text(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::AllGather:
      return "all_gather";
    case CollectiveKind::ReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::AllReduce:
      return "all_reduce";
    case CollectiveKind::AllToAll:
      return "all_to_all";
  }
  return {};
}

std::int32_t stream_count(const Plan& plan) {
  std::int32_t count = 1;
  for (const Step& step : plan.steps) count = std::max(count, step.stream + 1);
  return count;
}

std::vector<Slot> slots_of(const Step& step) {
  std::vector<Slot> slots;
  for_each_slot(step, [&](Slot slot) { slots.push_back(slot); });
  if (slots.empty()) return slots;
  // Sorting the ends of all messages would take as long as their proof.
  auto [least, most] = std::minmax_element(slots.begin(), slots.end());
  if (auto end = static_cast<std::size_t>(*most) + 1; *least >= 0 && end / 8 < slots.size()) {
    std::vector<bool> takes_part(end);
    for (Slot slot : slots) takes_part[to_index(slot)] = true;
    slots.clear();
    for (std::size_t slot = 0; slot < end; ++slot)
      if (takes_part[slot]) slots.push_back(static_cast<Slot>(slot));
    return slots;
  }
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  return slots;
}

IndexVector<StepId, std::int32_t> stage_of_steps(const Plan& plan) {
  IndexVector<StepId, std::int32_t> out(plan.steps.size(), 0);
  if (plan.stages.empty()) return out;
  IndexVector<TensorId, std::int32_t> of_tensor =
      stage_of_tensors(plan.stages, plan.tensors.size());
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    out[s] = of_tensor[plan.buffer(any_buffer(plan.steps[s])).tensor()];
  return out;
}

}  // namespace reshard
