// SPDX-License-Identifier: BSD-3-Clause
// The symbolic run. Contents (contents.h) of every buffer on every rank start empty, but for the source, which holds its layout's index set under the rank's addend. Each
// step reads pieces and writes pieces. Reads demand full coverage by pieces whose writers the reader is ordered after; that nothing was written twice is shown once in the end,
// and makes the coverage sound.
#include "core/plan/proof.h"

#include <map>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/plan/contents.h"
#include "core/plan/step_order.h"
#include "core/plan/structure.h"

namespace reshard {
namespace {

struct Refuted {
  Refutation refutation;
};

// Index set of one rank under a layout as (local box, shift) pairs in plan dims.
template <class Visit>
void for_each_run_box(const Layout& layout, std::int32_t position, Visit&& visit) {
  if (layout.dims() == 0) return visit(Box{{0}, {1}}, DimVector{0});
  MeshCoordinate coordinate = layout.mesh().coordinate(position);
  std::array<Runs, kMaxDims> runs;
  DimVector at(layout.dims());
  for (int d = 0; d < layout.dims(); ++d) {
    runs[static_cast<std::size_t>(d)] = layout.pieces(d).runs(layout.piece_of(d, coordinate));
    if (runs[static_cast<std::size_t>(d)].empty()) return;
  }
  for (;;) {
    Box box{DimVector(layout.dims()), DimVector(layout.dims())};
    DimVector shift(layout.dims());
    for (int d = 0; d < layout.dims(); ++d) {
      const Run& run = runs[static_cast<std::size_t>(d)][static_cast<std::size_t>(at[d])];
      box.lo[d] = run.local_lo;
      box.hi[d] = run.local_hi();
      shift[d] = run.global_lo - run.local_lo;
    }
    visit(box, shift);
    int d = layout.dims() - 1;
    for (; d >= 0; --d) {
      if (++at[d] < static_cast<std::int64_t>(runs[static_cast<std::size_t>(d)].size())) break;
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

constexpr std::int64_t kMaxPieces = std::int64_t{1} << 25;

class SymbolicRun {
 public:
  explicit SymbolicRun(const Plan& plan) : plan_(plan), order_(plan), contents_(plan.buffers.size() * plan.slot_count()), padding_(plan.steps.size(), 0) {}

  std::vector<std::int64_t> run() {
    load_source();
    for (step_ = 0; step_ < static_cast<std::int32_t>(plan_.steps.size()); ++step_)
      std::visit([&](const auto& body) { execute(body); }, plan_.steps[static_cast<std::size_t>(step_)].body);
    check_single_writes();
    check_destination();
    return std::move(padding_);
  }

 private:
  using Pieces = std::vector<Piece>;
  using ContentsRef = std::shared_ptr<Contents>;  // null: nothing written; shared by ranks that hold the same

  [[noreturn]] void refute(const std::string& what) const {
    throw Refuted{{StepId{step_}, fmt::format("step {} ({}) {}", step_, kind_text(plan_.steps[static_cast<std::size_t>(step_)]), what)}};
  }
  [[noreturn]] static void refute_end(std::string what) { throw Refuted{{std::nullopt, std::move(what)}}; }
  int rank(Slot slot) const { return to_int(plan_.ranks[static_cast<std::size_t>(slot)]); }
  ContentsRef& contents(BufferId buffer, Slot slot) { return contents_[to_index(buffer) * plan_.slot_count() + static_cast<std::size_t>(slot)]; }
  void put(BufferId buffer, Slot slot, const Piece& piece) {
    if (++pieces_ > kMaxPieces) throw InputError("plan: expected a proof of at most 2^25 boxes, found more (use fewer ranks)");
    ContentsRef& held = contents(buffer, slot);
    if (!held) held = std::make_shared<Contents>(plan_.dims());
    if (held.use_count() > 1) held = std::make_shared<Contents>(*held);
    held->write(piece);
  }
  // What a collective leaves alike on all ranks of a group is kept once.
  void put_on_all(BufferId buffer, std::span<const Slot> group, const std::shared_ptr<Contents>& result) {
    for (Slot slot : group) {
      ContentsRef& held = contents(buffer, slot);
      if (!held)
        held = result;
      else
        for (std::size_t i = 0; i < result->size(); ++i) put(buffer, slot, result->piece(i));
    }
  }

  void load_source() {
    const Layout& layout = plan_.request.source();
    std::map<std::int64_t, FoldId> fold_of;
    for (std::int32_t position = 0; position < layout.mesh().size(); ++position) {
      Slot slot = plan_.slot_of(layout.mesh().rank_at(position));
      std::int64_t addend = plan_.request.addend_of(position);
      auto [fold, added] = fold_of.try_emplace(addend, 0);
      if (added) fold->second = folds_.of({addend}, 1);
      FoldId id = fold->second;
      for_each_run_box(layout, position, [&](const Box& box, const DimVector& shift) { put(kSourceBuffer, slot, {box, shift, id, -1}); });
    }
  }

  // Visits what `slot` reads of `box`, checked for coverage and order.
  template <class Visit>
  void read(BufferId buffer, Slot slot, const Box& box, Visit&& visit) {
    std::shared_ptr<const Contents> held = contents(buffer, slot);
    std::int64_t covered = !held ? 0 : held->read(box, [&](const Piece& piece) {
      if (piece.writer >= 0 && !order_.ordered(slot, piece.writer, step_))
        refute(fmt::format("reads buffer {} on rank {}, which step {} writes, without being ordered after it", static_cast<std::int32_t>(buffer), rank(slot),
                           piece.writer));
      visit(piece);
    });
    if (covered < box.volume())
      refute(fmt::format("reads {} of buffer {} on rank {}, of which {} elements were never written", text(box), static_cast<std::int32_t>(buffer), rank(slot),
                         box.volume() - covered));
  }

  // Writes a piece read in coordinates at `from` to the same place relative to `to`.
  void write(BufferId buffer, Slot slot, Piece piece, const DimVector& from, const DimVector& to) {
    for (int d = 0; d < plan_.dims(); ++d) {
      std::int64_t by = to[d] - from[d];
      piece.box.lo[d] += by;
      piece.box.hi[d] += by;
      piece.shift[d] -= by;
    }
    piece.writer = step_;
    put(buffer, slot, piece);
  }
  void count_padding(const Piece& piece, std::int64_t receivers) {
    if (piece.fold == kPadding) padding_[static_cast<std::size_t>(step_)] += piece.box.volume() * receivers * size_bytes(plan_.request.dtype());
  }

  void execute(const CopyStep& step) {
    for (const CopyStep::Part& part : step.parts)
      for (std::uint32_t i = part.moves.first; i < part.moves.first + part.moves.count; ++i) {
        Move move = step.moves[i];
        read(move.source, part.slot, move.source_box(),
             [&](const Piece& piece) { write(move.destination, part.slot, piece, move.source_lo, move.destination_lo); });
      }
  }

  void execute(const FillStep& step) {
    for (const FillStep::Part& part : step.parts) put(part.buffer, part.slot, {part.box, DimVector(plan_.dims()), kPadding, step_});
  }

  void execute(const ExchangeStep& step) {
    for (const ExchangeStep::Message& message : step.messages)
      for (std::uint32_t i = message.moves.first; i < message.moves.first + message.moves.count; ++i) {
        Move move = step.moves[i];
        read(move.source, message.source, move.source_box(), [&](const Piece& piece) {
          count_padding(piece, 1);
          write(move.destination, message.destination, piece, move.source_lo, move.destination_lo);
        });
      }
  }

  // Refines `sum` (pieces relative to `sum_lo`) by one more operand read at `lo` in buffer on slot.
  void fold_in(Pieces& sum, const DimVector& sum_lo, BufferId buffer, Slot slot, const DimVector& lo) {
    Pieces next;
    for (const Piece& piece : sum) {
      Box box = piece.box;
      for (int d = 0; d < plan_.dims(); ++d) {
        box.lo[d] += lo[d] - sum_lo[d];
        box.hi[d] += lo[d] - sum_lo[d];
      }
      read(buffer, slot, box, [&](const Piece& other) {
        Piece joined = other;
        for (int d = 0; d < plan_.dims(); ++d) {
          std::int64_t by = sum_lo[d] - lo[d];
          joined.box.lo[d] += by;
          joined.box.hi[d] += by;
          joined.shift[d] -= by;
        }
        if (piece.fold >= 0 && joined.fold >= 0 && joined.shift != piece.shift)
          refute(fmt::format("folds different elements of the tensor on rank {}", rank(slot)));
        std::optional<FoldId> fold = folds_.join(piece.fold, joined.fold);
        if (!fold) refute(fmt::format("folds an addend twice, or values divided differently, on rank {}", rank(slot)));
        joined.fold = *fold;
        if (piece.fold >= 0) joined.shift = piece.shift;
        next.push_back(joined);
      });
    }
    sum = std::move(next);
  }

  void finish_fold(Pieces& sum, ReduceOp op, std::int64_t divisor, std::size_t operands) {
    if (operands > 1 && op != plan_.request.fold().op) refute(fmt::format("folds by {}, the request by {}", text(op), text(plan_.request.fold().op)));
    for (Piece& piece : sum) {
      std::optional<FoldId> fold = folds_.divide(piece.fold, divisor);
      if (!fold) refute("divides too often");
      piece.fold = *fold;
    }
  }

  void execute(const ReduceStep& step) {
    for (const ReduceStep::Part& part : step.parts) {
      const ReduceStep::Operand& first = step.operands[part.first_operand];
      Pieces sum;
      read(first.buffer, part.slot, box_at(first.lo, part.extents), [&](const Piece& piece) { sum.push_back(piece); });
      for (std::uint32_t k = 1; k < part.operand_count; ++k) {
        const ReduceStep::Operand& operand = step.operands[part.first_operand + k];
        fold_in(sum, first.lo, operand.buffer, part.slot, operand.lo);
      }
      finish_fold(sum, step.op, step.divisor, part.operand_count);
      for (const Piece& piece : sum) write(part.destination, part.slot, piece, first.lo, part.destination_lo);
    }
  }

  // Box of block i of n along dim.
  static Box block(const Shape& shape, int dim, std::int64_t i, std::int64_t n) {
    Box box = box_of(shape);
    box.lo[dim] = shape[dim] / n * i;
    box.hi[dim] = shape[dim] / n * (i + 1);
    return box;
  }

  void execute(const CollectiveStep& step) {
    for (std::size_t g = 0; g < step.group_count(); ++g) {
      std::span<const Slot> group = step.group(g);
      Shape input = plan_.buffer(step.input).shape(group[0]), output = plan_.buffer(step.output).shape(group[0]);
      switch (step.kind) {
        case CollectiveKind::AllGather:
          all_gather(step, group, box_of(input), output);
          break;
        case CollectiveKind::AllToAll:
          all_to_all(step, group, input, output);
          break;
        case CollectiveKind::ReduceScatter:
          for (std::int32_t i = 0; i < step.group_size; ++i) {
            Pieces sum = folded(step, group, block(input, step.input_dim, i, step.group_size));
            for (const Piece& piece : sum) count_padding(piece, step.group_size - 1);
            for (const Piece& piece : sum)
              write(step.output, group[static_cast<std::size_t>(i)], piece, block(input, step.input_dim, i, step.group_size).lo, DimVector(plan_.dims()));
          }
          break;
        case CollectiveKind::AllReduce: {
          Pieces sum = folded(step, group, box_of(input));
          for (const Piece& piece : sum) count_padding(piece, 2 * (step.group_size - 1));
          auto result = std::make_shared<Contents>(plan_.dims());
          for (Piece& piece : sum) {
            piece.writer = step_;
            result->write(piece);
          }
          put_on_all(step.output, group, result);
          break;
        }
      }
    }
  }

  void all_gather(const CollectiveStep& step, std::span<const Slot> group, const Box& input, const Shape& output) {
    auto result = std::make_shared<Contents>(plan_.dims());
    for (std::int32_t i = 0; i < step.group_size; ++i) {
      DimVector to = block(output, step.output_dim, i, step.group_size).lo;
      read(step.input, group[static_cast<std::size_t>(i)], input, [&](const Piece& piece) {
        count_padding(piece, step.group_size - 1);
        Piece moved = piece;
        for (int d = 0; d < plan_.dims(); ++d) {
          moved.box.lo[d] += to[d];
          moved.box.hi[d] += to[d];
          moved.shift[d] -= to[d];
        }
        moved.writer = step_;
        result->write(moved);
      });
    }
    put_on_all(step.output, group, result);
  }

  void all_to_all(const CollectiveStep& step, std::span<const Slot> group, const Shape& input, const Shape& output) {
    for (std::int32_t i = 0; i < step.group_size; ++i)
      for (std::int32_t j = 0; j < step.group_size; ++j) {
        Box from = block(input, step.input_dim, j, step.group_size), to = block(output, step.output_dim, i, step.group_size);
        read(step.input, group[static_cast<std::size_t>(i)], from, [&](const Piece& piece) {
          count_padding(piece, i == j ? 0 : 1);
          write(step.output, group[static_cast<std::size_t>(j)], piece, from.lo, to.lo);
        });
      }
  }

  Pieces folded(const CollectiveStep& step, std::span<const Slot> group, const Box& box) {
    Pieces sum;
    read(step.input, group[0], box, [&](const Piece& piece) { sum.push_back(piece); });
    for (std::size_t j = 1; j < group.size(); ++j) fold_in(sum, box.lo, step.input, group[j], box.lo);
    finish_fold(sum, step.op, step.divisor, group.size());
    return sum;
  }

  void check_single_writes() {
    std::set<const Contents*> seen;
    for (std::size_t i = 0; i < contents_.size(); ++i) {
      if (!contents_[i] || (contents_[i].use_count() > 1 && !seen.insert(contents_[i].get()).second)) continue;
      auto overlap = contents_[i]->first_overlap();
      if (!overlap) continue;
      Piece a = contents_[i]->piece(overlap->first), b = contents_[i]->piece(overlap->second);
      auto slot = static_cast<Slot>(i % plan_.slot_count());
      throw Refuted{{StepId{std::max(a.writer, b.writer)},
                     fmt::format("step {} writes {} of buffer {} on rank {}, which step {} writes too", std::max(a.writer, b.writer),
                                 text(intersect(a.box, b.box)), i / plan_.slot_count(), rank(slot), std::min(a.writer, b.writer))}};
    }
  }

  // The fold that each destination rank must hold; ranks that agree on the kept Partial axes share one.
  FoldId wanted(std::int32_t position) {
    std::int64_t key = 0;
    MeshCoordinate coordinate = plan_.request.destination().mesh().coordinate(position);
    for (const FoldMeaning::Axis& axis : plan_.request.fold().axes)
      if (!axis.folded) key = key * axis.size + coordinate[static_cast<std::size_t>(axis.axis)];
    auto [it, added] = wanted_.try_emplace(key, 0);
    if (added) it->second = folds_.of(plan_.request.addends_wanted(position), plan_.request.fold().divisor);
    return it->second;
  }

  void check_destination() {
    const Layout& layout = plan_.request.destination();
    // Ranks that hold the same contents and want the same index set need one look.
    std::set<std::pair<const Contents*, std::vector<std::int64_t>>> seen;
    for (std::int32_t position = 0; position < layout.mesh().size(); ++position) {
      Slot slot = plan_.slot_of(layout.mesh().rank_at(position));
      ContentsRef held = contents(kDestinationBuffer, slot);
      // Nothing overlaps by now, so equal volumes mean that every element is there.
      std::int64_t missing = plan_.buffer(kDestinationBuffer).elements(slot) - (held ? held->volume() : 0);
      if (missing != 0) refute_end(fmt::format("{} elements of the destination on rank {} are never written", missing, rank(slot)));
      if (!held) continue;
      FoldId fold = wanted(position);
      if (held.use_count() > 2) {
        std::vector<std::int64_t> key{fold};
        for (int d = 0; d < layout.dims(); ++d) key.push_back(layout.piece_of(d, layout.mesh().coordinate(position)));
        if (!seen.emplace(held.get(), std::move(key)).second) continue;
      }
      for_each_run_box(layout, position, [&](const Box& box, const DimVector& shift) { check_box(*held, slot, box, shift, fold); });
    }
  }

  void check_box(const Contents& held, Slot slot, const Box& box, const DimVector& shift, FoldId fold) {
    held.read(box, [&](const Piece& piece) {
      if (piece.fold < 0) refute_end(fmt::format("padding reaches {} of the destination on rank {}", text(piece.box), rank(slot)));
      if (piece.shift != shift)
        refute_end(fmt::format("{} of the destination on rank {} holds the elements at {} instead of {}", text(piece.box), rank(slot),
                               text(shifted(piece.box, piece.shift)), text(shifted(piece.box, shift))));
      if (piece.fold != fold)
        refute_end(fmt::format("{} of the destination on rank {} is not the complete fold that the request asks for", text(piece.box), rank(slot)));
    });
  }

  const Plan& plan_;
  StepOrder order_;
  FoldSets folds_;
  std::vector<ContentsRef> contents_;  // [buffer * slots + slot]
  std::int64_t pieces_ = 0;
  std::map<std::int64_t, FoldId> wanted_;
  std::vector<std::int64_t> padding_;
  std::int32_t step_ = -1;
};

}  // namespace

ProofResult check_plan(const Plan& plan) {
  ProofResult result;
  result.refutation = check_structure(plan);
  if (result.refutation) return result;
  try {
    result.padding_bytes = SymbolicRun(plan).run();
  } catch (Refuted& refuted) {
    result.refutation = std::move(refuted.refutation);
  }
  return result;
}

ProofResult prove(const Plan& plan) {
  ProofResult result = check_plan(plan);
  RESHARD_CHECK(result.proved(), fmt::format("planner {} on {}: {}", plan.planner, plan.request.text(), result.refutation->what));
  return result;
}

}  // namespace reshard
