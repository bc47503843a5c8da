// SPDX-License-Identifier: BSD-3-Clause
// Collectives by their meaning: gathers are copies between members, reductions are folds over
// members. An all_reduce folds once, at the group's first member, and copies the result: for n
// members it reads or writes the shard 3n - 1 times, where folding at each would take n (n + 1).
#include "core/schedule/lowering.h"

#include <vector>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/integers.h"

namespace reshard {
namespace {

class Lowering {
 public:
  Lowering(const Plan& plan, Operations& out) : plan_(plan), out_(out) {}

  void operator()(const CopyStep& step) {
    each_part(step.parts, [&](const CopyStep::SlotMoves& part) {
      move_all(step.moves, part.moves, part.slot, part.slot);
    });
  }

  void operator()(const ExchangeStep& step) {
    each_part(step.messages, [&](const ExchangeStep::Message& message) {
      move_all(step.moves, message.moves, message.source, message.destination);
    });
  }

  void operator()(const FillStep& step) {
    each_part(step.parts, [&](const FillStep::SlotFill& part) {
      if (!part.box.empty()) out_.fill({part.slot, part.buffer, part.box.lo}, part.box.extents());
    });
  }

  void operator()(const ReduceStep& step) {
    each_part(step.parts, [&](const ReduceStep::SlotFold& part) {
      if (element_count(part.extents) == 0) return;
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
    });
  }

  void operator()(const CollectiveStep& step) {
    for (std::size_t g = 0; g < step.group_count(); ++g) {
      out_.part(g);
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
  template <class Parts, class Visit>
  void each_part(const Parts& parts, Visit&& visit) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      out_.part(i);
      visit(parts[i]);
    }
  }

  void move_all(const MoveList& moves, const MoveRange& range, Slot from, Slot to) {
    RESHARD_CHECK(std::size_t{range.first} + range.count <= moves.size(),
                  fmt::format("moves {} + {} of {}", range.first, range.count, moves.size()));
    for_each_move(moves, range, [&](const Move& move) {
      if (element_count(move.extents) > 0)
        out_.copy({from, move.source, move.source_lo}, {to, move.destination, move.destination_lo},
                  move.extents);
    });
  }

  // Proofs check this too, but an unproved plan must not be run either.
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

  // By the meaning all members hold the same values; each has its own memory.
  void spread(const CollectiveStep& step) {
    out_.then();
    for (std::size_t g = 0; g < step.group_count(); ++g) {
      out_.part(g);
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

// Reports only the buffers of operations.
class Accesses : public Operations {
 public:
  explicit Accesses(const VisitAccess& visit) : visit_(visit) {}

  void copy(const Place& from, const Place& to, const DimVector&) override {
    visit_(from.buffer, from.slot, false);
    visit_(to.buffer, to.slot, true);
  }
  void fill(const Place& to, const DimVector&) override { visit_(to.buffer, to.slot, true); }
  void fold(ReduceOp, std::int64_t, std::span<const Place> operands, const Place& to,
            const DimVector&) override {
    for (const Place& operand : operands) visit_(operand.buffer, operand.slot, false);
    visit_(to.buffer, to.slot, true);
  }

 private:
  const VisitAccess& visit_;
};

}  // namespace

void lower(const Plan& plan, const Step& step, Operations& out) {
  std::visit(Lowering(plan, out), step.body);
}

namespace {

// Calls visit(number of the move, its bytes) for every move of a message.
template <class Visit>
void for_each_sent(const Plan& plan, const ExchangeStep& step, const ExchangeStep::Message& message,
                   Visit&& visit) {
  for (std::uint32_t i = 0; i < message.moves.count; ++i) {
    std::size_t at = std::size_t{message.moves.first} + i;
    visit(at, step.moves.elements(at) * plan.element_bytes(step.moves.source(at)));
  }
}

}  // namespace

void for_each_message(const Plan& plan, const Step& step, const VisitMessage& visit) {
  const auto* exchange = std::get_if<ExchangeStep>(&step.body);
  if (exchange == nullptr) return;
  for (const ExchangeStep::Message& message : exchange->messages) {
    std::int64_t bytes = 0, boxes = 0;
    for_each_sent(plan, *exchange, message, [&](std::size_t move, std::int64_t of_move) {
      add_bytes(bytes, of_move);
      boxes += plan.boxes_of(exchange->moves, move);
    });
    visit(message.source, message.destination, bytes, boxes);
  }
}

void for_each_sent_box(const Plan& plan, const Step& step, const VisitSentBox& visit) {
  const auto* exchange = std::get_if<ExchangeStep>(&step.body);
  if (exchange == nullptr) return;
  for (const ExchangeStep::Message& message : exchange->messages)
    for_each_sent(plan, *exchange, message, [&](std::size_t move, std::int64_t bytes) {
      const MoveList& moves = exchange->moves;
      const Buffer& from = plan.buffer(moves.source(move));
      std::optional<int> dim = plan.series_dim(moves.source(move));
      visit(message.source, message.destination,
            {from.tensor(), from.first_of_series() + (dim ? moves.source_lo(move, *dim) : 0),
             plan.boxes_of(moves, move), bytes});
    });
}

void for_each_access(const Plan& plan, const Step& step, const VisitAccess& visit) {
  if (const CollectiveStep* collective = collective_of(step)) {
    for (Slot slot : collective->members) {
      visit(collective->input, slot, false);
      visit(collective->output, slot, true);
    }
    return;
  }
  Accesses accesses(visit);
  lower(plan, step, accesses);
}

}  // namespace reshard
