// SPDX-License-Identifier: BSD-3-Clause
// Collectives by their meaning: gathers are copies between members, reductions folds over members.
// An all_reduce folds once, at the group's first member, and copies: for n members 3n - 1 times the
// shard is read or written, n (n + 1) times if each folded for itself.
#include "core/schedule/lowering.h"

#include <vector>

#include <fmt/format.h>

#include "core/base/errors.h"

namespace reshard {
namespace {

class Lowering {
 public:
  Lowering(const Plan& plan, Operations& out) : plan_(plan), out_(out) {}

  void operator()(const CopyStep& step) {
    for (const CopyStep::Part& part : step.parts)
      move_all(step.moves, part.moves, part.slot, part.slot);
  }

  void operator()(const ExchangeStep& step) {
    for (const ExchangeStep::Message& message : step.messages)
      move_all(step.moves, message.moves, message.source, message.destination);
  }

  void operator()(const FillStep& step) {
    for (const FillStep::Part& part : step.parts)
      if (!part.box.empty()) out_.fill({part.slot, part.buffer, part.box.lo}, part.box.extents());
  }

  void operator()(const ReduceStep& step) {
    for (const ReduceStep::Part& part : step.parts) {
      if (element_count(part.extents) == 0) continue;
      RESHARD_CHECK(std::size_t{part.first_operand} + part.operand_count <= step.operands.size(),
                    fmt::format("operands {} + {} of {}", part.first_operand, part.operand_count,
                                step.operands.size()));
      operands_.clear();
      for (std::uint32_t k = 0; k < part.operand_count; ++k) {
        const ReduceStep::Operand& operand = step.operands[part.first_operand + k];
        operands_.push_back({part.slot, operand.buffer, operand.lo});
      }
      out_.fold(step.op, step.divisor, operands_,
                {part.slot, part.destination, part.destination_lo}, part.extents);
    }
  }

  void operator()(const CollectiveStep& step) {
    for (std::size_t g = 0; g < step.group_count(); ++g) {
      Box input = input_of(plan_, step, g), output = output_of(plan_, step, g);
      check(step, input, output);
      switch (step.kind) {
        case CollectiveKind::AllGather:
          all_gather(step, step.group(g), input, output);
          break;
        case CollectiveKind::AllToAll:
          all_to_all(step, step.group(g), input, output);
          break;
        case CollectiveKind::ReduceScatter:
          for (std::int32_t i = 0; i < step.group_size; ++i)
            fold(step, step.group(g), block_of(input, step.input_dim, i, step.group_size),
                 {step.group(g)[to_index(i)], step.output, output.lo});
          break;
        case CollectiveKind::AllReduce:
          fold(step, step.group(g), input, {step.group(g)[0], step.output, output.lo});
          break;
      }
    }
    if (step.kind == CollectiveKind::AllReduce) spread(step);
  }

 private:
  void move_all(const MoveList& moves, const MoveRange& range, Slot from, Slot to) {
    RESHARD_CHECK(std::size_t{range.first} + range.count <= moves.size(),
                  fmt::format("moves {} + {} of {}", range.first, range.count, moves.size()));
    for_each_move(moves, range, [&](const Move& move) {
      if (element_count(move.extents) > 0)
        out_.copy({from, move.source, move.source_lo}, {to, move.destination, move.destination_lo},
                  move.extents);
    });
  }

  // The proof has seen to it; what was not proved must not be run either.
  static void check(const CollectiveStep& step, const Box& input, const Box& output) {
    bool scatters =
             step.kind == CollectiveKind::ReduceScatter || step.kind == CollectiveKind::AllToAll,
         gathers = step.kind == CollectiveKind::AllGather || step.kind == CollectiveKind::AllToAll;
    std::int64_t n = step.group_size;
    bool whole = (!scatters || input.extent(step.input_dim) % n == 0) &&
                 (!gathers || output.extent(step.output_dim) % n == 0);
    DimVector from = (scatters ? block_of(input, step.input_dim, 0, n) : input).extents(),
              to = (gathers ? block_of(output, step.output_dim, 0, n) : output).extents();
    RESHARD_CHECK(whole && from == to, fmt::format("{} of {} ranks from {} to {}", text(step.kind),
                                                   n, text(input), text(output)));
  }

  void all_gather(const CollectiveStep& step, std::span<const Slot> group, const Box& input,
                  const Box& output) {
    for (Slot to : group)
      for (std::int32_t j = 0; j < step.group_size; ++j)
        out_.copy({group[to_index(j)], step.input, input.lo},
                  {to, step.output, block_of(output, step.output_dim, j, step.group_size).lo},
                  input.extents());
  }

  void all_to_all(const CollectiveStep& step, std::span<const Slot> group, const Box& input,
                  const Box& output) {
    for (std::int32_t i = 0; i < step.group_size; ++i) {
      Box from = block_of(input, step.input_dim, i, step.group_size);
      for (std::int32_t j = 0; j < step.group_size; ++j)
        out_.copy({group[to_index(j)], step.input, from.lo},
                  {group[to_index(i)], step.output,
                   block_of(output, step.output_dim, j, step.group_size).lo},
                  from.extents());
    }
  }

  void fold(const CollectiveStep& step, std::span<const Slot> group, const Box& box,
            const Place& to) {
    operands_.clear();
    for (Slot member : group) operands_.push_back({member, step.input, box.lo});
    out_.fold(step.op, step.divisor, operands_, to, box.extents());
  }

  // All members hold the same values by meaning; each gets memory of its own.
  void spread(const CollectiveStep& step) {
    out_.then();
    for (std::size_t g = 0; g < step.group_count(); ++g) {
      Box box = output_of(plan_, step, g);
      for (Slot member : step.group(g).subspan(1))
        out_.copy({step.group(g)[0], step.output, box.lo}, {member, step.output, box.lo},
                  box.extents());
    }
  }

  const Plan& plan_;
  Operations& out_;
  std::vector<Place> operands_;
};

}  // namespace

void lower(const Plan& plan, const Step& step, Operations& out) {
  std::visit(Lowering(plan, out), step.body);
}

void for_each_access(const Step& step, const VisitAccess& visit) {
  if (const auto* copy = std::get_if<CopyStep>(&step.body)) {
    for (const CopyStep::Part& part : copy->parts)
      for_each_move(copy->moves, part.moves, [&](const Move& move) {
        visit(move.source, part.slot, false);
        visit(move.destination, part.slot, true);
      });
  } else if (const auto* fill = std::get_if<FillStep>(&step.body)) {
    for (const FillStep::Part& part : fill->parts) visit(part.buffer, part.slot, true);
  } else if (const auto* exchange = std::get_if<ExchangeStep>(&step.body)) {
    for (const ExchangeStep::Message& message : exchange->messages)
      for_each_move(exchange->moves, message.moves, [&](const Move& move) {
        visit(move.source, message.source, false);
        visit(move.destination, message.destination, true);
      });
  } else if (const auto* collective = std::get_if<CollectiveStep>(&step.body)) {
    for (Slot slot : collective->members) {
      visit(collective->input, slot, false);
      visit(collective->output, slot, true);
    }
  } else {
    const auto& reduce = std::get<ReduceStep>(step.body);
    for (const ReduceStep::Part& part : reduce.parts) {
      for (std::uint32_t k = 0; k < part.operand_count; ++k)
        visit(reduce.operands[part.first_operand + k].buffer, part.slot, false);
      visit(part.destination, part.slot, true);
    }
  }
}

}  // namespace reshard
