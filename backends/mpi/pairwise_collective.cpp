// SPDX-License-Identifier: BSD-3-Clause
// Collectives as messages between all pairs of the group. Where values are folded, every rank gets
// its block of each member's input and folds them in the order that the plan declares, rounding
// after each operation: bit for bit the store's result, which no order that MPI may choose
// promises. Also the way of whatever MPI's counts cannot say.
#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/mpi/collective.h"
#include "core/base/errors.h"
#include "core/bytes/box_fold.h"

namespace reshard::backends::mpi {
namespace {

// Elements [first, first + count) of a buffer.
struct Stretch {
  std::int64_t first, count;
};

// Block i of n of `elements`, as even as can be.
Stretch block_of(std::int64_t elements, std::int64_t n, std::int64_t i) {
  std::int64_t base = elements / n, rest = elements % n;
  return {i * base + std::min(i, rest), base + (i < rest ? 1 : 0)};
}

class PairwisePart : public Part {
 public:
  PairwisePart(const PartContext& context, const CollectiveStep& step, const Group& group)
      : group_(group),
        me_(static_cast<std::size_t>(context.step.member)),
        n_(step.group_size),
        width_(context.element_bytes()) {
    input_ = context.memory.of(step.input);
    output_ = context.memory.of(step.output);
    in_ = context.plan.buffer(step.input).elements(context.slot);
    switch (step.kind) {
      case CollectiveKind::AllGather:
        gather(
            context, {0, in_}, input_,
            [this](std::int64_t j) {
              return Stretch{j * in_, in_};
            },
            first_);
        keep(0, static_cast<std::int64_t>(me_) * in_, in_);
        break;
      case CollectiveKind::AllToAll:
        scatter(context, output_);
        keep(my_block().first, my_block().first, my_block().count);
        break;
      case CollectiveKind::ReduceScatter:
        fold(context, step, output_);
        break;
      case CollectiveKind::AllReduce: {
        fold(context, step, output_ + my_block().first * width_);
        gather(
            context, my_block(), output_, [this](std::int64_t j) { return block_of(in_, n_, j); },
            second_);
        break;
      }
    }
  }

  void issue(Traffic& traffic) override {
    folded_ = operands_.empty();
    copied_ = kept_bytes_ == 0;
    // What is folded must have come before; the rest may come when it likes.
    for (const Message& message : first_.receives)
      traffic.receive(message, operands_.empty() ? pending : operands_pending_);
    for (const Message& message : second_.receives) traffic.receive(message, pending);
    for (const Message& message : first_.sends) traffic.send(message, pending);
    for (const Message& message : second_.sends) traffic.send(message, pending, &folded_);
  }

  Work work() override {
    if (!copied_) {
      std::memcpy(keep_to_, keep_from_, static_cast<std::size_t>(kept_bytes_));
      copied_ = true;
    } else if (!folded_) {
      if (operands_pending_ > 0) return Work::Waiting;
      if (fold_count_ > 0) fold_row(op_, dtype_, divisor_, operands_, fold_to_, fold_count_);
      folded_ = true;
    }
    return Work::Done;
  }

  std::vector<const Pending*> awaited() const override { return {&pending, &operands_pending_}; }

 private:
  struct Stage {
    std::vector<Message> receives, sends;
  };

  Stretch my_block() const { return block_of(in_, n_, static_cast<std::int64_t>(me_)); }

  void add(const PartContext& context, std::vector<Message>& messages, std::size_t member,
           std::byte* buffer, const Stretch& stretch) const {
    if (stretch.count == 0) return;
    Message message;
    message.peer = group_[member];
    message.tag = context.tag();
    message.element_bytes = width_;
    append(message, {buffer + stretch.first * width_, {stretch.count}, {0}, {stretch.count}},
           context.traffic.chunk_bytes(message.peer));
    messages.push_back(std::move(message));
  }
  // Everyone's stretch goes to everyone: `mine` of `from` is sent, member j's lands in the output
  // at at(j).
  template <class At>
  void gather(const PartContext& context, const Stretch& mine, std::byte* from, const At& at,
              Stage& stage) {
    for (std::size_t k = 1; k < group_.size(); ++k) {
      std::size_t to = (me_ + k) % group_.size(),
                  sender = (me_ + group_.size() - k) % group_.size();
      add(context, stage.sends, to, from, mine);
      add(context, stage.receives, sender, output_, at(static_cast<std::int64_t>(sender)));
    }
  }
  // Block j of the input goes to member j; member j's block lands as the j-th of `into`, each as
  // long as this rank's own block.
  void scatter(const PartContext& context, std::byte* into) {
    for (std::size_t k = 1; k < group_.size(); ++k) {
      std::size_t to = (me_ + k) % group_.size(),
                  sender = (me_ + group_.size() - k) % group_.size();
      add(context, first_.sends, to, input_, block_of(in_, n_, static_cast<std::int64_t>(to)));
      add(context, first_.receives, sender, into,
          {static_cast<std::int64_t>(sender) * my_block().count, my_block().count});
    }
  }
  void fold(const PartContext& context, const CollectiveStep& step, std::byte* to) {
    op_ = step.op;
    dtype_ = context.plan.request().dtype();
    divisor_ = step.divisor;
    fold_to_ = to;
    fold_count_ = my_block().count;
    scratch_ = std::make_unique<Block>(n_ * fold_count_ * width_);
    scatter(context, scratch_->data());
    for (std::int64_t j = 0; j < n_; ++j)
      operands_.push_back(static_cast<std::size_t>(j) == me_
                              ? input_ + my_block().first * width_
                              : scratch_->data() + j * fold_count_ * width_);
  }
  void keep(std::int64_t from, std::int64_t to, std::int64_t count) {
    keep_from_ = input_ + from * width_;
    keep_to_ = output_ + to * width_;
    kept_bytes_ = count * width_;
  }

  const Group group_;
  std::size_t me_;
  std::int64_t n_, width_, in_ = 0;
  std::byte *input_ = nullptr, *output_ = nullptr;
  Stage first_, second_;  // second_: of what was folded
  Pending operands_pending_ = 0;
  bool copied_ = true, folded_ = true;
  const std::byte* keep_from_ = nullptr;
  std::byte* keep_to_ = nullptr;
  std::int64_t kept_bytes_ = 0;
  ReduceOp op_ = ReduceOp::Sum;
  DType dtype_ = DType::U8;
  std::int64_t divisor_ = 1;
  std::byte* fold_to_ = nullptr;
  std::int64_t fold_count_ = 0;
  std::unique_ptr<Block> scratch_;
  std::vector<const std::byte*> operands_;
};

}  // namespace

std::unique_ptr<Part> make_pairwise_collective(const PartContext& context,
                                               const CollectiveStep& step, const Group& group) {
  return std::make_unique<PairwisePart>(context, step, group);
}

}  // namespace reshard::backends::mpi
