// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/step_tables.h"

#include <span>
#include <utility>

namespace reshard::backends::cuda {
namespace {

class StepLaunches {
 public:
  StepLaunches(const Plan& plan, const Shards& shards, LaunchTables& tables)
      : plan_(plan),
        shards_(shards),
        tables_(tables),
        dtype_(plan.request().dtype()),
        width_(size_bytes(dtype_)) {}

  std::vector<LaunchTables::Id> operator()(const CopyStep& step) {
    CopyTiles tiles(bytes_of(step.moves));
    for (const CopyStep::Part& part : step.parts)
      move_all(step.moves, part.moves, part.slot, part.slot, tiles);
    return {tables_.add(tiles)};
  }

  std::vector<LaunchTables::Id> operator()(const ExchangeStep& step) {
    CopyTiles tiles(bytes_of(step.moves));
    for (const ExchangeStep::Message& message : step.messages)
      move_all(step.moves, message.moves, message.source, message.destination, tiles);
    return {tables_.add(tiles)};
  }

  std::vector<LaunchTables::Id> operator()(const FillStep& step) {
    std::int64_t elements = 0;
    for (const FillStep::Part& part : step.parts) elements += part.box.volume();
    CopyTiles tiles(elements * width_);
    for (const FillStep::Part& part : step.parts) {
      if (part.box.empty()) continue;
      Shape shape = plan_.buffer(part.buffer).shape(part.slot);
      tiles.clear(shards_.data(part.buffer, part.slot), {shape, part.box.lo}, part.box.extents(),
                  width_);
    }
    return {tables_.add(tiles)};
  }

  std::vector<LaunchTables::Id> operator()(const ReduceStep& step) {
    std::int64_t elements = 0;
    for (const ReduceStep::Part& part : step.parts) elements += element_count(part.extents);
    FoldTiles tiles(elements * width_, width_);
    for (const ReduceStep::Part& part : step.parts)
      if (element_count(part.extents) > 0) reduce(step, part, tiles);
    return {tables_.add(tiles, step.op, dtype_, step.divisor)};
  }

  std::vector<LaunchTables::Id> operator()(const CollectiveStep& step) {
    switch (step.kind) {
      case CollectiveKind::AllGather:
      case CollectiveKind::AllToAll:
        return {move_blocks(step)};
      case CollectiveKind::ReduceScatter:
        return {fold_blocks(step)};
      case CollectiveKind::AllReduce:
        // Folded once and copied: for n members 3n - 1 times the shard is read or written; n (n +
        // 1) times if each folded for itself.
        return {fold_blocks(step), copy_from_first(step)};
    }
    return {};
  }

 private:
  std::int64_t bytes_of(const MoveList& moves) const {
    std::int64_t elements = 0;
    for (std::size_t i = 0; i < moves.size(); ++i) elements += moves.elements(i);
    return elements * width_;
  }

  void move_all(const MoveList& moves, const MoveRange& range, Slot source, Slot destination,
                CopyTiles& tiles) const {
    for (std::uint32_t i = range.first; i < range.first + range.count; ++i) {
      Move move = moves[i];
      if (element_count(move.extents) == 0) continue;
      Shape from = plan_.buffer(move.source).shape(source),
            to = plan_.buffer(move.destination).shape(destination);
      tiles.copy(shards_.data(move.destination, destination), {to, move.destination_lo},
                 shards_.data(move.source, source), {from, move.source_lo}, move.extents, width_);
    }
  }

  void reduce(const ReduceStep& step, const ReduceStep::Part& part, FoldTiles& tiles) const {
    auto listed = std::span(step.operands).subspan(part.first_operand, part.operand_count);
    std::vector<Shape> shapes;  // places refer to them
    std::vector<const std::byte*> operands;
    std::vector<BoxPlace> places;
    shapes.reserve(listed.size());
    for (const ReduceStep::Operand& operand : listed) {
      shapes.push_back(plan_.buffer(operand.buffer).shape(part.slot));
      operands.push_back(shards_.data(operand.buffer, part.slot));
      places.push_back({shapes.back(), operand.lo});
    }
    Shape shape = plan_.buffer(part.destination).shape(part.slot);
    tiles.fold(shards_.data(part.destination, part.slot), {shape, part.destination_lo}, operands,
               places, part.extents);
  }

  std::int64_t output_bytes(const CollectiveStep& step) const {
    std::int64_t bytes = 0;
    for (Slot member : step.members) bytes += shards_.bytes(step.output, member);
    return bytes;
  }

  // Block j of member i's output is the whole input of member j, or block i of it.
  LaunchTables::Id move_blocks(const CollectiveStep& step) {
    CopyTiles tiles(output_bytes(step));
    for (std::size_t g = 0; g < step.group_count(); ++g) {
      std::span<const Slot> group = step.group(g);
      std::int64_t block = shards_.bytes(step.output, group[0]) / step.group_size;
      for (std::size_t i = 0; i < group.size(); ++i)
        for (std::size_t j = 0; j < group.size(); ++j) {
          std::int64_t from =
              step.kind == CollectiveKind::AllToAll ? static_cast<std::int64_t>(i) * block : 0;
          tiles.copy_bytes(
              shards_.data(step.output, group[i]) + static_cast<std::int64_t>(j) * block,
              shards_.data(step.input, group[j]) + from, block);
        }
    }
    return tables_.add(tiles);
  }

  // reduce_scatter: block i into member i's output. all_reduce: all into the first member's.
  LaunchTables::Id fold_blocks(const CollectiveStep& step) {
    FoldTiles tiles(output_bytes(step), width_);
    std::vector<const std::byte*> operands;
    for (std::size_t g = 0; g < step.group_count(); ++g) {
      std::span<const Slot> group = step.group(g);
      std::int64_t block = shards_.bytes(step.output, group[0]);
      std::size_t outputs = step.kind == CollectiveKind::AllReduce ? 1 : group.size();
      for (std::size_t i = 0; i < outputs; ++i) {
        operands.clear();
        for (Slot member : group)
          operands.push_back(shards_.data(step.input, member) +
                             static_cast<std::int64_t>(i) * block);
        tiles.fold_bytes(shards_.data(step.output, group[i]), operands, block);
      }
    }
    return tables_.add(tiles, step.op, dtype_, step.divisor);
  }

  LaunchTables::Id copy_from_first(const CollectiveStep& step) {
    CopyTiles tiles(output_bytes(step));
    for (std::size_t g = 0; g < step.group_count(); ++g) {
      Slot first = step.group(g)[0];
      for (Slot member : step.group(g).subspan(1))
        tiles.copy_bytes(shards_.data(step.output, member), shards_.data(step.output, first),
                         shards_.bytes(step.output, first));
    }
    return tables_.add(tiles);
  }

  const Plan& plan_;
  const Shards& shards_;
  LaunchTables& tables_;
  DType dtype_;
  std::int64_t width_;
};

}  // namespace

std::vector<LaunchTables::Id> add_step(const Plan& plan, const Step& step, const Shards& shards,
                                       LaunchTables& tables) {
  return std::visit(StepLaunches(plan, shards, tables), step.body);
}

}  // namespace reshard::backends::cuda
