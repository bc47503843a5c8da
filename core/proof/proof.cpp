// SPDX-License-Identifier: BSD-3-Clause
// The symbolic run: every step moves boxes of indices instead of bytes.
#include "core/proof/proof.h"

#include <memory>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/plan/step_order.h"
#include "core/proof/symbolic_memory.h"
#include "core/schedule/lowering.h"

namespace reshard {
namespace {

using Pieces = std::vector<KnownBox>;

// Folds boxes of the symbolic memory.
class SymbolicFold {
 public:
  SymbolicFold(const Plan& plan, SymbolicMemory& memory) : plan_(plan), memory_(memory) {}

  // Returns pieces in the coordinates of the first operand.
  Pieces run(ReduceOp op, std::int64_t divisor, std::span<const Place> operands,
             const DimVector& extents) {
    const Place& first = operands.front();
    Pieces sum;
    memory_.read(first.buffer, first.slot, box_at(first.lo, extents),
                 [&](const KnownBox& piece) { sum.push_back(piece); });
    for (const Place& operand : operands.subspan(1)) fold_in(sum, first.lo, operand);
    finish(sum, first.buffer, op, divisor, operands.size());
    return sum;
  }

 private:
  // Refines `sum` (pieces relative to `sum_lo`) by one more operand.
  void fold_in(Pieces& sum, const DimVector& sum_lo, const Place& operand) {
    const DimVector& lo = operand.lo;
    Pieces next;
    for (const KnownBox& piece : sum) {
      Box box = piece.box;
      for (int d = 0; d < plan_.dims(); ++d) {
        box.lo[d] += lo[d] - sum_lo[d];
        box.hi[d] += lo[d] - sum_lo[d];
      }
      memory_.read(operand.buffer, operand.slot, box, [&](const KnownBox& other) {
        KnownBox joined = other;
        for (int d = 0; d < plan_.dims(); ++d) {
          std::int64_t by = sum_lo[d] - lo[d];
          joined.box.lo[d] += by;
          joined.box.hi[d] += by;
          joined.shift[d] -= by;
        }
        if (piece.fold >= 0 && joined.fold >= 0 && joined.shift != piece.shift)
          memory_.refute(fmt::format("folds different elements of the tensor on rank {}",
                                     memory_.rank(operand.slot)));
        std::optional<FoldId> fold = memory_.folds().join(piece.fold, joined.fold);
        if (!fold)
          memory_.refute(
              fmt::format("folds an addend twice, or values divided differently, on rank {}",
                          memory_.rank(operand.slot)));
        joined.fold = *fold;
        if (piece.fold >= 0) joined.shift = piece.shift;
        next.push_back(joined);
      });
    }
    sum = std::move(next);
  }

  void finish(Pieces& sum, BufferId buffer, ReduceOp op, std::int64_t divisor,
              std::size_t operands) {
    if (operands > 1 && op != plan_.request(buffer).fold().op)
      memory_.refute(fmt::format("folds by {}, but the request by {}", text(op),
                                 text(plan_.request(buffer).fold().op)));
    for (KnownBox& piece : sum) {
      std::optional<FoldId> fold = memory_.folds().divide(piece.fold, divisor);
      if (!fold) memory_.refute("divides too often");
      piece.fold = *fold;
    }
  }

  const Plan& plan_;
  SymbolicMemory& memory_;
};

// Runs operations on the symbolic memory, whatever steps they came from.
class OperationsRun : public Operations {
 public:
  OperationsRun(const Plan& plan, SymbolicMemory& memory)
      : plan_(plan), memory_(memory), fold_(plan, memory), padding_(plan.steps.size(), 0) {}

  void copy(const Place& from, const Place& to, const DimVector& extents) override {
    memory_.read(from.buffer, from.slot, box_at(from.lo, extents), [&](const KnownBox& piece) {
      count_padding(piece, from.buffer, from.slot == to.slot ? 0 : 1);
      memory_.write(to.buffer, to.slot, piece, from.lo, to.lo);
    });
  }
  void fill(const Place& to, const DimVector& extents) override {
    DimVector zero(plan_.dims());
    memory_.write(to.buffer, to.slot, {box_at(to.lo, extents), zero, kPadding, -1}, zero, zero);
  }
  void fold(ReduceOp op, std::int64_t divisor, std::span<const Place> operands, const Place& to,
            const DimVector& extents) override {
    for (const KnownBox& piece : folded(op, divisor, operands, extents))
      memory_.write(to.buffer, to.slot, piece, operands[0].lo, to.lo);
  }
  void then() override { memory_.read_own(); }
  void part(std::size_t index) override { memory_.begin_part(index); }

  Pieces folded(ReduceOp op, std::int64_t divisor, std::span<const Place> operands,
                const DimVector& extents) {
    return fold_.run(op, divisor, operands, extents);
  }
  // Adds the piece, if it is padding, once per receiver.
  void count_padding(const KnownBox& piece, BufferId buffer, std::int64_t receivers) {
    if (piece.fold == kPadding)
      add_bytes(padding_[to_index(memory_.step())],
                Int128{piece.box.volume()} * receivers * plan_.element_bytes(buffer));
  }
  std::vector<std::int64_t> take_padding() { return std::move(padding_); }

 private:
  const Plan& plan_;
  SymbolicMemory& memory_;
  SymbolicFold fold_;
  std::vector<std::int64_t> padding_;  // bytes by step
};

// Runs a plan's steps as the operations that they are lowered to, except collectives: the result
// of an all_gather or all_reduce is built once for all ranks of a group.
class SymbolicRun {
 public:
  explicit SymbolicRun(const Plan& plan) : plan_(plan), memory_(plan), run_(plan, memory_) {}

  std::vector<std::int64_t> run() {
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      memory_.begin(static_cast<std::int32_t>(s));
      const Step& step = plan_.steps[s];
      if (const CollectiveStep* collective = collective_of(step))
        execute(*collective);
      else
        lower(plan_, step, run_);
    }
    memory_.check_single_writes();
    memory_.check_destinations();
    return run_.take_padding();
  }

 private:
  void execute(const CollectiveStep& step) {
    for (std::size_t g = 0; g < step.group_count(); ++g) {
      memory_.begin_part(g);
      std::span<const Slot> group = step.group(g);
      Box input = input_of(plan_, step, g), output = output_of(plan_, step, g);
      switch (step.kind) {
        case CollectiveKind::AllGather:
          all_gather(step, group, input, output);
          break;
        case CollectiveKind::AllToAll:
          all_to_all(step, group, input, output);
          break;
        case CollectiveKind::ReduceScatter:
          for (std::int32_t i = 0; i < step.group_size; ++i) {
            Box block = block_of(input, step.input_dim, i, step.group_size);
            Pieces sum = folded(step, group, block);
            for (const KnownBox& piece : sum) {
              run_.count_padding(piece, step.input, step.group_size - 1);
              memory_.write(step.output, group[to_index(i)], piece, block.lo, output.lo);
            }
          }
          break;
        case CollectiveKind::AllReduce: {
          Pieces sum = folded(step, group, input);
          auto result = std::make_shared<Contents>(plan_.dims());
          for (const KnownBox& piece : sum) {
            run_.count_padding(piece, step.input, 2 * (step.group_size - 1));
            result->write(memory_.moved(piece, input.lo, output.lo));
          }
          memory_.write_on_all(step.output, group, result);
          break;
        }
      }
    }
  }

  void all_gather(const CollectiveStep& step, std::span<const Slot> group, const Box& input,
                  const Box& output) {
    auto result = std::make_shared<Contents>(plan_.dims());
    for (std::int32_t i = 0; i < step.group_size; ++i) {
      DimVector to = block_of(output, step.output_dim, i, step.group_size).lo;
      memory_.read(step.input, group[to_index(i)], input, [&](const KnownBox& piece) {
        run_.count_padding(piece, step.input, step.group_size - 1);
        result->write(memory_.moved(piece, input.lo, to));
      });
    }
    memory_.write_on_all(step.output, group, result);
  }

  void all_to_all(const CollectiveStep& step, std::span<const Slot> group, const Box& input,
                  const Box& output) {
    // A few senders at a time, so that their contents and one receiver's stay in the cache.
    constexpr std::int32_t kAtOnce = 16;
    const std::int32_t n = step.group_size;
    for (std::int32_t first = 0; first < n; first += kAtOnce)
      for (std::int32_t j = 0; j < n; ++j) {
        Box from = block_of(input, step.input_dim, j, n);
        for (std::int32_t i = first; i < std::min(n, first + kAtOnce); ++i) {
          DimVector to = block_of(output, step.output_dim, i, n).lo;
          memory_.read(step.input, group[to_index(i)], from, [&](const KnownBox& piece) {
            run_.count_padding(piece, step.input, i == j ? 0 : 1);
            memory_.write(step.output, group[to_index(j)], piece, from.lo, to);
          });
        }
      }
  }

  Pieces folded(const CollectiveStep& step, std::span<const Slot> group, const Box& box) {
    std::vector<Place> operands;
    for (Slot member : group) operands.push_back({member, step.input, box.lo});
    return run_.folded(step.op, step.divisor, operands, box.extents());
  }

  const Plan& plan_;
  SymbolicMemory memory_;
  OperationsRun run_;
};

}  // namespace

namespace {

// Whether stages follow one another on every rank.
std::optional<Refutation> check_turns(const Plan& plan) {
  if (plan.stages.empty()) return std::nullopt;
  std::optional<StepOrder::OutOfTurn> found = StepOrder(plan).out_of_turn(plan);
  if (!found) return std::nullopt;
  IndexVector<StepId, std::int32_t> stage_of = stage_of_steps(plan);
  return Refutation{
      StepId{found->later},
      fmt::format(
          "step {} ({}) of stage {} can start on rank {} before step {} of stage {} is done",
          found->later, kind_text(plan.steps[found->later]), stage_of[found->later],
          to_int(plan.ranks[found->slot]), found->earlier, stage_of[found->earlier])};
}

}  // namespace

ProofResult check_plan(const Plan& plan) {
  ProofResult result;
  result.refutation = check_structure(plan);
  if (!result.refutation) result.refutation = check_turns(plan);
  if (result.refutation) return result;
  try {
    result.padding_bytes = SymbolicRun(plan).run();
  } catch (Refuted& refuted) {
    result.refutation = std::move(refuted.refutation);
  }
  return result;
}

std::optional<Refutation> check_operations(const Plan& plan, const RunStep& run) {
  try {
    SymbolicMemory memory(plan, SymbolicMemory::Order::Listed);
    OperationsRun operations(plan, memory);
    for (std::size_t step = 0; step < plan.steps.size(); ++step) {
      memory.begin(static_cast<std::int32_t>(step));
      run(StepId{static_cast<std::int32_t>(step)}, operations);
    }
    memory.check_single_writes();
    memory.check_destinations();
    return std::nullopt;
  } catch (Refuted& refuted) {
    return std::move(refuted.refutation);
  }
}

void debug_check_operations([[maybe_unused]] const Plan& plan,
                            [[maybe_unused]] const RunStep& run) {
#ifndef NDEBUG
  // A plan that does not do its request has no meaning to compare with.
  if (!check_plan(plan).proved()) return;
  std::optional<Refutation> wrong = check_operations(plan, run);
  RESHARD_CHECK(!wrong, wrong->what);
#endif
}

ProofResult prove(const Plan& plan) {
  ProofResult result = check_plan(plan);
  RESHARD_CHECK(result.proved(), fmt::format("planner {} on {}: {}", plan.planner,
                                             plan.tensors.front().text(), result.refutation->what));
  return result;
}

}  // namespace reshard
