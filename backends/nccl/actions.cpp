// SPDX-License-Identifier: BSD-3-Clause
#include "backends/nccl/actions.h"

#include <vector>

namespace reshard::backends::nccl {
namespace {

std::int64_t box_bytes(const DimVector& extents, const RankMemory& memory) {
  return element_count(extents) * memory.element_bytes();
}

Action copies(const RankMemory& memory, const RankStep& part, const CopyStep& step,
              LaunchTables& tables) {
  const Plan& plan = memory.plan();
  std::int64_t total = 0;
  auto for_each_move = [&](auto&& visit) {
    for (std::uint32_t p = part.first_part; p < part.first_part + part.part_count; ++p)
      for (std::uint32_t m = step.parts[p].moves.first;
           m < step.parts[p].moves.first + step.parts[p].moves.count; ++m)
        visit(step.moves[m]);
  };
  for_each_move([&](const Move& move) { total += box_bytes(move.extents, memory); });
  CopyTiles tiles(total);
  for_each_move([&](const Move& move) {
    Shape from = plan.buffer(move.source).shape(memory.slot()),
          to = plan.buffer(move.destination).shape(memory.slot());
    tiles.copy(memory.at(move.destination), {to, move.destination_lo}, memory.at(move.source),
               {from, move.source_lo}, move.extents, memory.element_bytes());
  });
  return Kernel{tables.add(tiles)};
}

Action fills(const RankMemory& memory, const RankStep& part, const FillStep& step,
             LaunchTables& tables) {
  std::span<const FillStep::Part> parts =
      std::span(step.parts).subspan(part.first_part, part.part_count);
  std::int64_t total = 0;
  for (const FillStep::Part& fill : parts) total += fill.box.volume() * memory.element_bytes();
  CopyTiles tiles(total);
  for (const FillStep::Part& fill : parts) {
    if (fill.box.empty()) continue;
    Shape shape = memory.plan().buffer(fill.buffer).shape(memory.slot());
    tiles.clear(memory.at(fill.buffer), {shape, fill.box.lo}, fill.box.extents(),
                memory.element_bytes());
  }
  return Kernel{tables.add(tiles)};
}

Action reductions(const RankMemory& memory, const RankStep& part, const ReduceStep& step,
                  LaunchTables& tables) {
  const Plan& plan = memory.plan();
  std::span<const ReduceStep::Part> parts =
      std::span(step.parts).subspan(part.first_part, part.part_count);
  std::int64_t total = 0;
  for (const ReduceStep::Part& reduce : parts) total += box_bytes(reduce.extents, memory);
  FoldTiles tiles(total, memory.element_bytes());
  for (const ReduceStep::Part& reduce : parts) {
    std::vector<Shape> shapes;
    std::vector<const std::byte*> operands;
    std::vector<BoxPlace> places;
    shapes.reserve(reduce.operand_count);  // places refer into it
    for (const ReduceStep::Operand& operand :
         std::span(step.operands).subspan(reduce.first_operand, reduce.operand_count)) {
      shapes.push_back(plan.buffer(operand.buffer).shape(memory.slot()));
      places.push_back({shapes.back(), operand.lo});
      operands.push_back(memory.at(operand.buffer));
    }
    Shape to = plan.buffer(reduce.destination).shape(memory.slot());
    tiles.fold(memory.at(reduce.destination), {to, reduce.destination_lo}, operands, places,
               reduce.extents);
  }
  return Kernel{tables.add(tiles, step.op, plan.request().dtype(), step.divisor)};
}

std::optional<NcclType> nccl_type(DType dtype) {
  switch (dtype) {
    case DType::I8:
      return NcclType::Int8;
    case DType::U8:
      return NcclType::Uint8;
    case DType::I32:
      return NcclType::Int32;
    case DType::I64:
      return NcclType::Int64;
    case DType::F16:
      return NcclType::Float16;
    case DType::F32:
      return NcclType::Float32;
    case DType::F64:
      return NcclType::Float64;
    case DType::BF16:
      return NcclType::Bfloat16;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<NativeFold> native_fold(ReduceOp op, DType dtype, const ActionOptions& options) {
  std::optional<NcclType> type = nccl_type(dtype);
  if (!type || options.declared_order || options.over_parent) return std::nullopt;
  if (op == ReduceOp::Sum) return NativeFold{*type, NcclOp::Sum};
  if (op == ReduceOp::Product) return NativeFold{*type, NcclOp::Prod};
  if (is_floating(dtype)) return std::nullopt;
  if (op == ReduceOp::Min) return NativeFold{*type, NcclOp::Min};
  if (op == ReduceOp::Max) return NativeFold{*type, NcclOp::Max};
  return std::nullopt;
}

std::int64_t staging_bytes(const RankMemory& memory, const RankStep& part,
                           const ActionOptions& options) {
  const StepBody& body = memory.plan().steps[to_index(part.step)].body;
  if (std::holds_alternative<ExchangeStep>(body)) return exchange_staging_bytes(memory, part);
  if (std::holds_alternative<CollectiveStep>(body))
    return collective_staging_bytes(memory, part, options);
  return 0;
}

std::vector<Action> make_actions(const RankMemory& memory, const RankStep& part,
                                 const ActionOptions& options, LaunchTables& tables) {
  const StepBody& body = memory.plan().steps[to_index(part.step)].body;
  if (std::holds_alternative<ExchangeStep>(body)) return exchange_actions(memory, part, tables);
  if (std::holds_alternative<CollectiveStep>(body))
    return collective_actions(memory, part, options, tables);
  if (const auto* copy = std::get_if<CopyStep>(&body)) return {copies(memory, part, *copy, tables)};
  if (const auto* fill = std::get_if<FillStep>(&body)) return {fills(memory, part, *fill, tables)};
  return {reductions(memory, part, std::get<ReduceStep>(body), tables)};
}

}  // namespace reshard::backends::nccl
