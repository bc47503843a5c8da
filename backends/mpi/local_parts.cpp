// SPDX-License-Identifier: BSD-3-Clause
// Copies, fills and reductions within one rank's buffers, one box at a time.
#include <vector>

#include "backends/mpi/parts.h"
#include "core/bytes/box_copy.h"
#include "core/bytes/box_fold.h"

namespace reshard::backends::mpi {
namespace {

// Work cut into numbered pieces.
class LocalPart : public Part {
 public:
  Work work() final {
    if (next_ == count()) {
      next_ = 0;  // ready for the next run
      return Work::Done;
    }
    run(next_++);
    return Work::Some;
  }

 private:
  virtual std::size_t count() const = 0;
  virtual void run(std::size_t piece) = 0;
  std::size_t next_ = 0;
};

class CopyPart : public LocalPart {
 public:
  CopyPart(const PartContext& context, const CopyStep& step)
      : element_bytes_(context.element_bytes()) {
    for (std::uint32_t p = context.step.first_part;
         p < context.step.first_part + context.step.part_count; ++p) {
      const MoveRange& range = step.parts[p].moves;
      for (std::uint32_t i = range.first; i < range.first + range.count; ++i) {
        Move move = step.moves[i];
        copies_.push_back({end(context, move.source, move.source_lo),
                           end(context, move.destination, move.destination_lo), move.extents});
      }
    }
  }

 private:
  struct End {
    std::byte* buffer;
    Shape shape;
    DimVector lo;
  };
  struct Copy {
    End from, to;
    DimVector extents;
  };
  static End end(const PartContext& context, BufferId buffer, const DimVector& lo) {
    return {context.memory.of(buffer), context.plan.buffer(buffer).shape(context.slot), lo};
  }
  std::size_t count() const override { return copies_.size(); }
  void run(std::size_t piece) override {
    const Copy& copy = copies_[piece];
    copy_box(copy.to.buffer, {copy.to.shape, copy.to.lo}, copy.from.buffer,
             {copy.from.shape, copy.from.lo}, copy.extents, element_bytes_);
  }

  std::int64_t element_bytes_;
  std::vector<Copy> copies_;
};

class FillPart : public LocalPart {
 public:
  FillPart(const PartContext& context, const FillStep& step)
      : element_bytes_(context.element_bytes()) {
    for (std::uint32_t p = context.step.first_part;
         p < context.step.first_part + context.step.part_count; ++p)
      if (const FillStep::Part& part = step.parts[p]; !part.box.empty())
        fills_.push_back({context.memory.of(part.buffer),
                          context.plan.buffer(part.buffer).shape(context.slot), part.box.lo,
                          part.box.extents()});
  }

 private:
  struct Fill {
    std::byte* buffer;
    Shape shape;
    DimVector lo, extents;
  };
  std::size_t count() const override { return fills_.size(); }
  void run(std::size_t piece) override {
    const Fill& fill = fills_[piece];
    clear_box(fill.buffer, {fill.shape, fill.lo}, fill.extents, element_bytes_);
  }

  std::int64_t element_bytes_;
  std::vector<Fill> fills_;
};

class ReducePart : public LocalPart {
 public:
  ReducePart(const PartContext& context, const ReduceStep& step)
      : op_(step.op), dtype_(context.plan.request().dtype()), divisor_(step.divisor) {
    for (std::uint32_t p = context.step.first_part;
         p < context.step.first_part + context.step.part_count; ++p)
      if (element_count(step.parts[p].extents) > 0)
        folds_.push_back(fold_of(context, step, step.parts[p]));
  }

 private:
  static BoxFold fold_of(const PartContext& context, const ReduceStep& step,
                         const ReduceStep::Part& part) {
    auto shape = [&](BufferId buffer) { return context.plan.buffer(buffer).shape(context.slot); };
    BoxFold fold(context.memory.of(part.destination), shape(part.destination), part.destination_lo,
                 part.extents);
    for (std::uint32_t k = 0; k < part.operand_count; ++k) {
      const ReduceStep::Operand& operand = step.operands[part.first_operand + k];
      fold.add_operand(context.memory.of(operand.buffer), shape(operand.buffer), operand.lo);
    }
    return fold;
  }
  std::size_t count() const override { return folds_.size(); }
  void run(std::size_t piece) override { folds_[piece].run(op_, dtype_, divisor_); }

  ReduceOp op_;
  DType dtype_;
  std::int64_t divisor_;
  std::vector<BoxFold> folds_;
};

}  // namespace

std::unique_ptr<Part> make_local_part(const PartContext& context) {
  const StepBody& body = context.body().body;
  if (const auto* copy = std::get_if<CopyStep>(&body))
    return std::make_unique<CopyPart>(context, *copy);
  if (const auto* fill = std::get_if<FillStep>(&body))
    return std::make_unique<FillPart>(context, *fill);
  return std::make_unique<ReducePart>(context, std::get<ReduceStep>(body));
}

}  // namespace reshard::backends::mpi
