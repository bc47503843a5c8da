// SPDX-License-Identifier: BSD-3-Clause
#include "sim/store/steps.h"

#include <cstring>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/bytes/box_copy.h"
#include "core/bytes/box_fold.h"
#include "core/bytes/fold_row.h"

namespace reshard::sim {
namespace {

class StepRun {
 public:
  StepRun(const Plan& plan, StoreMemory& memory) : plan_(plan), memory_(memory) {}

  std::int64_t operator()(const CopyStep& step) {
    for (const CopyStep::Part& part : step.parts)
      move_all(step.moves, part.moves, part.slot, part.slot);
    return written_;
  }

  std::int64_t operator()(const ExchangeStep& step) {
    for (const ExchangeStep::Message& message : step.messages)
      move_all(step.moves, message.moves, message.source, message.destination);
    return written_;
  }

  std::int64_t operator()(const FillStep& step) {
    for (const FillStep::Part& part : step.parts) {
      if (part.box.empty()) continue;
      Shape shape = checked_shape(part.buffer, part.slot, part.box);
      clear_box(memory_.write(part.buffer, part.slot), {shape, part.box.lo}, part.box.extents(),
                memory_.element_bytes());
      written_ += part.box.volume() * memory_.element_bytes();
    }
    return written_;
  }

  std::int64_t operator()(const ReduceStep& step) {
    for (const ReduceStep::Part& part : step.parts) reduce(step, part);
    return written_;
  }

  std::int64_t operator()(const CollectiveStep& step) {
    for (std::size_t g = 0; g < step.group_count(); ++g) {
      check_group(step, step.group(g));
      switch (step.kind) {
        case CollectiveKind::AllGather:
          all_gather(step, step.group(g));
          break;
        case CollectiveKind::ReduceScatter:
          reduce_scatter(step, step.group(g));
          break;
        case CollectiveKind::AllReduce:
          all_reduce(step, step.group(g));
          break;
        case CollectiveKind::AllToAll:
          all_to_all(step, step.group(g));
          break;
      }
    }
    return written_;
  }

 private:
  // The buffer's shape on the slot, which holds the box.
  Shape checked_shape(BufferId buffer, Slot slot, const Box& box) const {
    RESHARD_CHECK(to_index(buffer) < plan_.buffers.size() &&
                      static_cast<std::size_t>(slot) < plan_.slot_count() &&
                      plan_.buffer(buffer).exists(slot),
                  fmt::format("slot {} has no buffer {}", slot, to_index(buffer)));
    Shape shape = plan_.buffer(buffer).shape(slot);
    RESHARD_CHECK(box.dims() == shape.size() && contains(box_of(shape), box),
                  fmt::format("box {} lies outside buffer {} [{}] of slot {}", text(box),
                              to_index(buffer), text(shape), slot));
    return shape;
  }

  void move_all(const MoveList& moves, const MoveRange& range, Slot source, Slot destination) {
    RESHARD_CHECK(std::size_t{range.first} + range.count <= moves.size(),
                  fmt::format("moves {} + {} of {}", range.first, range.count, moves.size()));
    for (std::uint32_t i = range.first; i < range.first + range.count; ++i) {
      Move move = moves[i];
      if (box_at(move.source_lo, move.extents).empty()) continue;
      Shape from = checked_shape(move.source, source, move.source_box()),
            to = checked_shape(move.destination, destination, move.destination_box());
      RESHARD_CHECK(move.source != move.destination || source != destination,
                    fmt::format("buffer {} is copied to itself", to_index(move.source)));
      std::byte* out = memory_.write(move.destination, destination);
      copy_box(out, {to, move.destination_lo}, memory_.read(move.source, source),
               {from, move.source_lo}, move.extents, memory_.element_bytes());
      written_ += element_count(move.extents) * memory_.element_bytes();
    }
  }

  void reduce(const ReduceStep& step, const ReduceStep::Part& part) {
    RESHARD_CHECK(part.operand_count >= 1 &&
                      std::size_t{part.first_operand} + part.operand_count <= step.operands.size(),
                  fmt::format("operands {} + {} of {}", part.first_operand, part.operand_count,
                              step.operands.size()));
    Box box = box_at(part.destination_lo, part.extents);
    if (box.empty()) return;
    Shape whole = checked_shape(part.destination, part.slot, box);
    std::byte* out = memory_.write(part.destination, part.slot);
    BoxFold fold(out, whole, part.destination_lo, part.extents);
    for (std::uint32_t k = 0; k < part.operand_count; ++k) {
      const ReduceStep::Operand& operand = step.operands[part.first_operand + k];
      RESHARD_CHECK(operand.buffer != part.destination,
                    fmt::format("buffer {} is reduced to itself", to_index(operand.buffer)));
      Shape from = checked_shape(operand.buffer, part.slot, box_at(operand.lo, part.extents));
      fold.add_operand(memory_.read(operand.buffer, part.slot), from, operand.lo);
    }
    fold.run(step.op, plan_.request.dtype(), step.divisor);
    written_ += box.volume() * memory_.element_bytes();
  }

  // Equal shapes within the group; block sizes match the kind.
  void check_group(const CollectiveStep& step, std::span<const Slot> group) const {
    for (BufferId buffer : {step.input, step.output})
      for (Slot slot : group) {
        checked_shape(buffer, slot, Box{DimVector(plan_.dims(), 0), DimVector(plan_.dims(), 0)});
        RESHARD_CHECK(plan_.buffer(buffer).shape(slot) == plan_.buffer(buffer).shape(group[0]),
                      fmt::format("buffer {} differs within a group", to_index(buffer)));
      }
    RESHARD_CHECK(step.input != step.output, "a collective works in place");
    std::int64_t input = bytes(step.input, group), output = bytes(step.output, group),
                 n = step.group_size;
    bool fits = step.kind == CollectiveKind::AllGather       ? output == n * input
                : step.kind == CollectiveKind::ReduceScatter ? input == n * output
                : step.kind == CollectiveKind::AllReduce
                    ? input == output
                    : input == output && input % (n * memory_.element_bytes()) == 0;
    RESHARD_CHECK(
        fits, fmt::format("{} of {} ranks from {} to {} bytes", text(step.kind), n, input, output));
  }

  std::int64_t bytes(BufferId buffer, std::span<const Slot> group) const {
    return memory_.size_bytes(buffer, group[0]);
  }

  void put(std::byte* out, const std::byte* in, std::int64_t bytes) {
    std::memcpy(out, in, static_cast<std::size_t>(bytes));
    written_ += bytes;
  }

  void all_gather(const CollectiveStep& step, std::span<const Slot> group) {
    std::int64_t block = bytes(step.input, group);
    for (Slot member : group) {
      std::byte* out = memory_.write(step.output, member);
      for (std::size_t j = 0; j < group.size(); ++j)
        put(out + static_cast<std::int64_t>(j) * block, memory_.read(step.input, group[j]), block);
    }
  }

  void all_to_all(const CollectiveStep& step, std::span<const Slot> group) {
    std::int64_t block = bytes(step.input, group) / step.group_size;
    for (std::size_t i = 0; i < group.size(); ++i) {
      std::byte* out = memory_.write(step.output, group[i]);
      for (std::size_t j = 0; j < group.size(); ++j)
        put(out + static_cast<std::int64_t>(j) * block,
            memory_.read(step.input, group[j]) + static_cast<std::int64_t>(i) * block, block);
    }
  }

  // Folds `size` bytes at `offset` of every member's input, in group order.
  void fold_inputs(const CollectiveStep& step, std::span<const Slot> group, std::int64_t offset,
                   std::int64_t size, std::byte* out) {
    std::vector<const std::byte*> operands;
    for (Slot member : group) operands.push_back(memory_.read(step.input, member) + offset);
    fold_row(step.op, plan_.request.dtype(), step.divisor, operands, out,
             size / memory_.element_bytes());
    written_ += size;
  }

  void reduce_scatter(const CollectiveStep& step, std::span<const Slot> group) {
    std::int64_t block = bytes(step.output, group);
    for (std::size_t i = 0; i < group.size(); ++i)
      fold_inputs(step, group, static_cast<std::int64_t>(i) * block, block,
                  memory_.write(step.output, group[i]));
  }

  void all_reduce(const CollectiveStep& step, std::span<const Slot> group) {
    std::int64_t size = bytes(step.output, group);
    const std::byte* first = memory_.write(step.output, group[0]);
    fold_inputs(step, group, 0, size, memory_.write(step.output, group[0]));
    // All members hold the same values by meaning; each gets memory of its own.
    for (Slot member : group.subspan(1)) put(memory_.write(step.output, member), first, size);
  }

  const Plan& plan_;
  StoreMemory& memory_;
  std::int64_t written_ = 0;
};

}  // namespace

std::int64_t run_step(const Plan& plan, const Step& step, StoreMemory& memory) {
  return std::visit(StepRun(plan, memory), step.body);
}

}  // namespace reshard::sim
