// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/slow_proof.h"

#include <set>

namespace reshard::test {
namespace {

using Values = std::vector<SlowValue>;
using State = SlowValue::State;

// Row-major place of lo + the `i`-th index of a box of these extents.
std::size_t place(const Shape& shape, const DimVector& lo, const DimVector& extents,
                  std::int64_t i) {
  std::int64_t out = 0, stride = 1;
  for (int d = shape.size() - 1; d >= 0; --d) {
    out += (lo[d] + i % extents[d]) * stride;
    i /= extents[d];
    stride *= shape[d];
  }
  return static_cast<std::size_t>(out);
}

}  // namespace

SlowRun::SlowRun(const SlowMeanings& meanings, const Plan& plan)
    : meanings_(meanings), plan_(plan), before_(plan.slot_count()), takes_part_(plan.slot_count()) {
  auto fits = [&](BufferId buffer, const std::vector<SlowMeaning::Shard>& shards) {
    std::size_t there = 0;
    for (Slot slot = 0; slot < static_cast<Slot>(plan.slot_count()); ++slot)
      there += plan.buffer(buffer).exists(slot) ? 1 : 0;
    bool out = there == shards.size();
    for (const SlowMeaning::Shard& shard : shards)
      out &= plan.buffer(buffer).exists(plan.slot_of(shard.rank)) &&
             plan.buffer(buffer).shape(plan.slot_of(shard.rank)) == shard.shape;
    return out;
  };
  for (std::size_t t = 0; t < meanings.size(); ++t) {
    TensorId tensor{static_cast<std::int32_t>(t)};
    if (!fits(source_of(tensor), meanings[t].source()) ||
        !fits(destination_of(tensor), meanings[t].destination())) {
      fault_ = "a buffer of a request has another shape";
      return;
    }
    for (const SlowMeaning::Shard& shard : meanings[t].source())
      values(source_of(tensor), plan.slot_of(shard.rank)) = shard.values;
  }
}

Values& SlowRun::values(BufferId buffer, Slot slot) {
  memory_.resize(plan_.buffers.size() * plan_.slot_count());
  Values& out = memory_[to_index(buffer) * plan_.slot_count() + static_cast<std::size_t>(slot)];
  if (out.empty()) out.resize(static_cast<std::size_t>(plan_.buffer(buffer).elements(slot)));
  return out;
}

const SlowValue& SlowRun::read(BufferId buffer, Slot slot, std::size_t index) {
  const SlowValue& value = values(buffer, slot)[index];
  demand(value.state != State::Unwritten, "reads what was not written");
  if (value.writer >= 0)
    demand(before_[static_cast<std::size_t>(slot)].back()[static_cast<std::size_t>(value.writer)],
           "reads what may be written later");
  return value;
}

void SlowRun::write(BufferId buffer, Slot slot, std::size_t index, SlowValue value) {
  SlowValue& place = values(buffer, slot)[index];
  demand(place.state == State::Unwritten, "writes an element again");
  place = value;
  place.writer = step_;
}

SlowValue SlowRun::joined(const SlowValue& a, const SlowValue& b) const {
  if (a.state == State::Padding && b.state == State::Padding) return a;
  if (a.state != State::Value || b.state != State::Value) return {State::Mixture, -1, -1, 0, 1};
  demand(a.element == b.element, "folds different elements");
  demand((a.addends & b.addends) == 0, "folds an addend twice");
  demand(a.divisor == b.divisor, "folds values divided differently");
  SlowValue out = a;
  out.addends |= b.addends;
  return out;
}

SlowValue SlowRun::folded(const std::vector<SlowValue>& operands, BufferId of, ReduceOp op,
                          std::int64_t divisor) const {
  demand(operands.size() == 1 || op == meaning(of).op(), "folds by another operator");
  SlowValue out = operands[0];
  for (std::size_t i = 1; i < operands.size(); ++i) out = joined(out, operands[i]);
  if (out.state != State::Value) return out;
  demand(Int128{out.divisor} * divisor <= Int128{1} << 62, "divides too often");
  out.divisor *= divisor;
  return out;
}

void SlowRun::follow_order(const Step& step) {
  std::set<Slot> slots;
  auto add = [&](Slot slot) {
    demand_slot(slot);
    slots.insert(slot);
  };
  if (const auto* copy = std::get_if<CopyStep>(&step.body))
    for (const auto& part : copy->parts) add(part.slot);
  else if (const auto* fill = std::get_if<FillStep>(&step.body))
    for (const auto& part : fill->parts) add(part.slot);
  else if (const auto* reduce = std::get_if<ReduceStep>(&step.body))
    for (const auto& part : reduce->parts) add(part.slot);
  else if (const auto* collective = std::get_if<CollectiveStep>(&step.body))
    for (Slot slot : collective->members) add(slot);
  else
    for (const auto& message : std::get<ExchangeStep>(step.body).messages)
      for (Slot slot : {message.source, message.destination}) add(slot);

  for (std::size_t slot = 0; slot < plan_.slot_count(); ++slot) {
    auto now = static_cast<std::size_t>(step_);
    std::vector<bool> done(now, false);
    bool here = slots.contains(static_cast<Slot>(slot));
    for (StepId id : step.after) {
      std::size_t earlier = to_index(id);
      if (!here || !takes_part_[slot][earlier]) continue;
      done[earlier] = true;
      for (std::size_t s = 0; s < earlier; ++s)
        if (before_[slot][earlier][s]) done[s] = true;
    }
    done.push_back(false);  // a step does not wait for itself
    before_[slot].push_back(std::move(done));
    takes_part_[slot].push_back(here);
  }
}

void SlowRun::demand_slot(Slot slot) const {
  demand(slot >= 0 && static_cast<std::size_t>(slot) < plan_.slot_count(), "names no rank");
}

void SlowRun::demand_buffer(BufferId buffer, Slot slot) const {
  demand(static_cast<std::int32_t>(buffer) >= 0 && to_index(buffer) < plan_.buffers.size(),
         "names no buffer");
  demand(plan_.buffer(buffer).exists(slot), "names a buffer that the rank does not have");
}

void SlowRun::demand_box(BufferId buffer, Slot slot, const DimVector& lo,
                         const DimVector& extents) const {
  demand_buffer(buffer, slot);
  demand(lo.size() == plan_.dims() && extents.size() == plan_.dims(), "has boxes of other dims");
  Shape shape = plan_.buffer(buffer).shape(slot);
  for (int d = 0; d < plan_.dims(); ++d)
    demand(extents[d] > 0 && lo[d] >= 0 && Int128{lo[d]} + extents[d] <= shape[d],
           "has a box outside its buffer");
}

void SlowRun::demand_operator(ReduceOp op, std::int64_t divisor, DType dtype) const {
  demand(op != ReduceOp::Avg && can_reduce(op, dtype), "has no such operator");
  demand(divisor >= 1 && divisor <= std::int64_t{1} << 62, "has no such divisor");
  demand(divisor == 1 || can_divide(dtype), "divides what has no division");
}

// Sources and destinations come first, in turn.
void SlowRun::demand_ends(BufferId from, BufferId to) const {
  demand(to_index(to) >= 2 * meanings_.size() || to_index(to) % 2 == 1, "writes a source");
  demand(&meaning(from) == &meaning(to), "moves into another tensor");
}

const SlowMeaning& SlowRun::meaning(BufferId buffer) const {
  return meanings_[to_index(plan_.buffer(buffer).tensor())];
}

// Ranges take all moves, one after the other, none empty.
void SlowRun::demand_ranges(const std::vector<MoveRange>& ranges, const MoveList& moves) const {
  demand(!ranges.empty() && moves.dims() == plan_.dims(), "is empty or of other dims");
  std::uint64_t next = 0;
  for (const MoveRange& range : ranges) {
    demand(range.first == next && range.count > 0, "has ranges that do not follow each other");
    next += range.count;
  }
  demand(next == moves.size(), "has ranges that do not take all boxes");
}

void SlowRun::move(const Move& move, Slot from, Slot to) {
  demand_box(move.source, from, move.source_lo, move.extents);
  demand_box(move.destination, to, move.destination_lo, move.extents);
  demand_ends(move.source, move.destination);
  Shape source = plan_.buffer(move.source).shape(from),
        destination = plan_.buffer(move.destination).shape(to);
  for (std::int64_t i = 0; i < element_count(move.extents); ++i)
    write(move.destination, to, place(destination, move.destination_lo, move.extents, i),
          read(move.source, from, place(source, move.source_lo, move.extents, i)));
}

void SlowRun::run(const CopyStep& step) {
  std::vector<MoveRange> ranges;
  for (std::size_t i = 0; i < step.parts.size(); ++i) {
    demand(i == 0 || step.parts[i - 1].slot < step.parts[i].slot, "has parts out of order");
    ranges.push_back(step.parts[i].moves);
  }
  demand_ranges(ranges, step.moves);
  for (const auto& [slot, moves] : step.parts)
    for (std::uint32_t i = 0; i < moves.count; ++i) move(step.moves[moves.first + i], slot, slot);
}

void SlowRun::run(const ExchangeStep& step) {
  std::vector<MoveRange> ranges;
  std::pair<Slot, Slot> last{-1, -1};
  for (const auto& [source, destination, moves] : step.messages) {
    demand(source != destination, "has a message to oneself");
    demand(last < std::pair(source, destination), "has messages out of order");
    last = {source, destination};
    ranges.push_back(moves);
  }
  demand_ranges(ranges, step.moves);
  for (const auto& [source, destination, moves] : step.messages)
    for (std::uint32_t i = 0; i < moves.count; ++i)
      move(step.moves[moves.first + i], source, destination);
}

void SlowRun::run(const FillStep& step) {
  demand(!step.parts.empty(), "is empty");
  Slot last = 0;
  for (const auto& [slot, buffer, box] : step.parts) {
    demand(last <= slot, "has parts out of order");
    last = slot;
    demand(box.lo.size() == box.hi.size(), "has boxes of other dims");
    demand_box(buffer, slot, box.lo, box.extents());
    demand_ends(buffer, buffer);
    Shape shape = plan_.buffer(buffer).shape(slot);
    for (std::int64_t i = 0; i < box.volume(); ++i)
      write(buffer, slot, place(shape, box.lo, box.extents(), i), {State::Padding, -1, -1, 0, 1});
  }
}

void SlowRun::run(const ReduceStep& step) {
  demand(!step.parts.empty(), "is empty");
  std::uint64_t next = 0;
  for (std::size_t p = 0; p < step.parts.size(); ++p) {
    demand(p == 0 || step.parts[p - 1].slot <= step.parts[p].slot, "has parts out of order");
    demand(step.parts[p].first_operand == next && step.parts[p].operand_count > 0,
           "has operands that do not follow each other");
    next += step.parts[p].operand_count;
  }
  demand(next == step.operands.size(), "has parts that do not take all operands");
  for (const ReduceStep::SlotFold& part : step.parts) {
    demand_box(part.destination, part.slot, part.destination_lo, part.extents);
    if (part.operand_count > 1 || step.divisor != 1)
      demand_operator(step.op, step.divisor, meaning(part.destination).dtype());
    for (std::uint32_t k = 0; k < part.operand_count; ++k) {
      const ReduceStep::Operand& operand = step.operands[part.first_operand + k];
      demand_box(operand.buffer, part.slot, operand.lo, part.extents);
      demand_ends(operand.buffer, part.destination);
    }
    for (std::int64_t i = 0; i < element_count(part.extents); ++i) {
      std::vector<SlowValue> operands;
      for (std::uint32_t k = 0; k < part.operand_count; ++k) {
        const ReduceStep::Operand& operand = step.operands[part.first_operand + k];
        Shape shape = plan_.buffer(operand.buffer).shape(part.slot);
        operands.push_back(
            read(operand.buffer, part.slot, place(shape, operand.lo, part.extents, i)));
      }
      Shape shape = plan_.buffer(part.destination).shape(part.slot);
      write(part.destination, part.slot, place(shape, part.destination_lo, part.extents, i),
            folded(operands, part.destination, step.op, step.divisor));
    }
  }
}

void SlowRun::run(const CollectiveStep& step) {
  demand(step.group_size >= 2 && !step.members.empty() &&
             step.members.size() % static_cast<std::size_t>(step.group_size) == 0,
         "has no groups of one size");
  std::set<Slot> all(step.members.begin(), step.members.end());
  demand(all.size() == step.members.size(), "names a rank twice");
  for (Slot slot : step.members)
    for (BufferId buffer : {step.input, step.output}) demand_buffer(buffer, slot);
  demand_ends(step.input, step.output);
  if (step.kind == CollectiveKind::ReduceScatter || step.kind == CollectiveKind::AllReduce)
    demand_operator(step.op, step.divisor, meaning(step.input).dtype());
  demand(step.input_boxes.size() == step.output_boxes.size() &&
             (step.input_boxes.empty() || step.input_boxes.size() == step.group_count()),
         "has boxes of some groups");
  for (std::size_t g = 0; g < step.group_count(); ++g) run_group(step, g);
}

// Block i of n along a dim with nothing but 1 before it is the i-th n-th of the row-major elements.
void SlowRun::run_group(const CollectiveStep& step, std::size_t g) {
  std::span<const Slot> group = step.group(g);
  auto operand = [&](BufferId buffer, const std::vector<Box>& boxes) {
    for (Slot slot : group)
      if (boxes.empty())
        demand(plan_.buffer(buffer).shape(slot) == plan_.buffer(buffer).shape(group[0]),
               "has a group of different shapes");
      else
        demand_box(buffer, slot, boxes[g].lo, boxes[g].extents());
    return boxes.empty() ? box_of(plan_.buffer(buffer).shape(group[0])) : boxes[g];
  };
  Box input = operand(step.input, step.input_boxes),
      output = operand(step.output, step.output_boxes);
  Shape input_block = input.extents(), output_block = output.extents();
  bool gathers = step.kind == CollectiveKind::AllGather,
       swaps = step.kind == CollectiveKind::AllToAll,
       scatters = step.kind == CollectiveKind::ReduceScatter;
  auto cut = [&](Shape& shape, int dim) {
    demand(dim >= 0 && dim < shape.size(), "has blocks along no dim");
    for (int d = 0; d < dim; ++d) demand(shape[d] == 1, "has blocks in pieces");
    demand(shape[dim] % step.group_size == 0, "has unequal blocks");
    shape[dim] /= step.group_size;
  };
  if (scatters || swaps) cut(input_block, step.input_dim);
  if (gathers || swaps) cut(output_block, step.output_dim);
  demand(input_block == output_block, "has blocks of two shapes");
  auto block = static_cast<std::size_t>(element_count(input_block)), n = group.size();
  demand(block > 0, "moves nothing");

  auto taken = [&](Slot member, std::size_t index) {
    return read(step.input, member,
                place(plan_.buffer(step.input).shape(member), input.lo, input.extents(),
                      static_cast<std::int64_t>(index)));
  };
  auto fold = [&](std::size_t index) {
    std::vector<SlowValue> operands;
    for (Slot member : group) operands.push_back(taken(member, index));
    return folded(operands, step.input, step.op, step.divisor);
  };
  std::vector<Values> results(n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t e = 0; e < static_cast<std::size_t>(output.volume()); ++e) {
      std::size_t j = e / block, rest = e % block;
      results[i].push_back(gathers    ? taken(group[j], rest)
                           : swaps    ? taken(group[j], i * block + rest)
                           : scatters ? fold(i * block + rest)
                                      : fold(e));
    }
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t e = 0; e < results[i].size(); ++e)
      write(step.output, group[i],
            place(plan_.buffer(step.output).shape(group[i]), output.lo, output.extents(),
                  static_cast<std::int64_t>(e)),
            results[i][e]);
}

bool SlowRun::run_step(std::size_t number) {
  if (!fault_.empty()) return false;
  step_ = static_cast<std::int32_t>(number);
  const Step& step = plan_.steps[number];
  try {
    for (std::size_t i = 0; i < step.after.size(); ++i)
      demand(static_cast<std::int32_t>(step.after[i]) >= 0 && to_index(step.after[i]) < number &&
                 (i == 0 || step.after[i - 1] < step.after[i]),
             "waits for a step that is not before it, or out of order");
    follow_order(step);
    std::visit([this](const auto& body) { run(body); }, step.body);
  } catch (const Wrong& wrong) {
    fault_ = "step " + std::to_string(number) + " " + wrong.what;
  }
  return fault_.empty();
}

bool SlowRun::check_destination() {
  if (!fault_.empty()) return false;
  for (std::size_t t = 0; t < meanings_.size(); ++t)
    for (const SlowMeaning::Shard& shard : meanings_[t].destination()) {
      const Values& found =
          values(destination_of(TensorId{static_cast<std::int32_t>(t)}), plan_.slot_of(shard.rank));
      for (std::size_t e = 0; e < shard.values.size(); ++e)
        if (!found[e].holds(shard.values[e]))
          fault_ = "rank " + std::to_string(to_int(shard.rank)) + " ends with a wrong element " +
                   std::to_string(e);
    }
  return fault_.empty();
}

std::string slow_fault(const SlowMeanings& meanings, const Plan& plan) {
  SlowRun run(meanings, plan);
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    if (!run.run_step(s)) return run.fault();
  run.check_destination();
  return run.fault();
}

}  // namespace reshard::test
