// SPDX-License-Identifier: BSD-3-Clause
#include "core/schedule/packed_messages.h"

#include <optional>
#include <tuple>
#include <utility>

#include "core/base/integers.h"
#include "core/bytes/box_copy.h"

namespace reshard {
namespace {

enum class MessageEnd : std::uint8_t { Sender, Receiver };

// The first element of a move's box in its buffer at one end, if it is contiguous there. Tensors of
// a series are apart.
std::optional<std::int64_t> stretch_at(const Plan& plan, const Move& move, Slot slot,
                                       MessageEnd end) {
  bool sends = end == MessageEnd::Sender;
  if (std::optional<int> dim = plan.series_dim(move.source); dim && move.extents[*dim] > 1)
    return std::nullopt;
  return stretch_of(plan.buffer(sends ? move.source : move.destination).shape(slot),
                    sends ? move.source_lo : move.destination_lo, move.extents);
}

// Whether moves that are added one after another follow each other in one buffer without gaps.
class Contiguity {
 public:
  Contiguity(const Plan& plan, Slot slot, MessageEnd end) : plan_(plan), slot_(slot), end_(end) {}

  void add(const Move& move, std::int64_t elements) {
    if (!holds_) return;
    BufferId buffer = end_ == MessageEnd::Sender ? move.source : move.destination;
    std::optional<std::int64_t> at = stretch_at(plan_, move, slot_, end_);
    const std::optional<int> dim = plan_.series_dim(buffer);
    const std::int64_t tensor =
        !dim ? 0 : (end_ == MessageEnd::Sender ? move.source_lo : move.destination_lo)[*dim];
    holds_ = at && (is_first_ || next_ == std::tuple(buffer, tensor, *at));
    if (!holds_) return;
    next_ = {buffer, tensor, *at + elements};
    is_first_ = false;
  }
  bool holds() const { return holds_; }

 private:
  const Plan& plan_;
  Slot slot_;
  MessageEnd end_;
  bool holds_ = true, is_first_ = true;
  // Unless the first: buffer, tensor of the series, element.
  std::tuple<BufferId, std::int64_t, std::int64_t> next_ = {};
};

// The outermost dim such that the box of one index in all dims before it is contiguous at both
// ends; the number of dims if no such box is as large as a transfer.
int split_dim(const Plan& plan, const ExchangeStep::Message& message, Move move) {
  for (int d = 0; d < move.extents.size(); ++d) {
    if (element_count(move.extents) * plan.element_bytes(move.source) < kOwnTransferBytes) break;
    if (stretch_at(plan, move, message.source, MessageEnd::Sender) &&
        stretch_at(plan, move, message.destination, MessageEnd::Receiver))
      return d;
    move.extents[d] = 1;
  }
  return move.extents.size();
}

void add_split(MoveList& out, const Move& move, int dim) {
  DimVector at(dim, 0);
  do {
    Move part = move;
    for (int d = 0; d < dim; ++d) {
      part.source_lo[d] += at[d];
      part.destination_lo[d] += at[d];
      part.extents[d] = 1;
    }
    out.push_back(part);
  } while (next_index(at, [&](int d) { return move.extents[d]; }));
}

}  // namespace

PackedBytes packed_bytes(const Plan& plan, const ExchangeStep& step,
                         const ExchangeStep::Message& message) {
  PackedBytes out;
  auto bytes_of = [&](std::size_t i) {
    std::size_t at = message.moves.first + i;
    return step.moves.elements(at) * plan.element_bytes(step.moves.source(at)) /
           plan.boxes_of(step.moves, at);
  };
  for_each_transfer(message.moves.count, bytes_of, [&](std::size_t first, std::size_t count) {
    std::int64_t bytes = 0, alike = 1;
    Contiguity sender(plan, message.source, MessageEnd::Sender),
        receiver(plan, message.destination, MessageEnd::Receiver);
    for (std::size_t i = first; i < first + count; ++i) {
      Move move = step.moves[message.moves.first + i];
      // Large boxes of a series are a transfer each.
      if (std::optional<int> dim = plan.series_dim(move.source);
          dim && bytes_of(i) >= kOwnTransferBytes)
        alike = std::exchange(move.extents[*dim], 1);
      std::int64_t elements = element_count(move.extents);
      bytes += elements * plan.element_bytes(move.source);
      sender.add(move, elements);
      receiver.add(move, elements);
    }
    bytes = alike * ceil_div(bytes, kPackedAlignment) * kPackedAlignment;
    if (!sender.holds()) out.sender += bytes;
    if (!receiver.holds()) out.receiver += bytes;
  });
  return out;
}

std::vector<std::int64_t> packed_per_slot(const Plan& plan, const ExchangeStep& step) {
  std::vector<std::int64_t> out(plan.slot_count(), 0);
  for (const ExchangeStep::Message& message : step.messages) {
    PackedBytes bytes = packed_bytes(plan, step, message);
    out[to_index(message.source)] += bytes.sender;
    out[to_index(message.destination)] += bytes.receiver;
  }
  return out;
}

void split_contiguous(Plan& plan) {
  for (Step& step : plan.steps) {
    auto* exchange = exchange_of(step);
    if (exchange == nullptr) continue;
    MoveList moves(plan.dims());
    for (ExchangeStep::Message& message : exchange->messages) {
      auto first = static_cast<std::uint32_t>(moves.size());
      for_each_move(exchange->moves, message.moves, [&](const Move& move) {
        int dim = split_dim(plan, message, move);
        add_split(moves, move, dim < move.extents.size() ? dim : 0);
      });
      message.moves = {first, static_cast<std::uint32_t>(moves.size()) - first};
    }
    exchange->moves = std::move(moves);
  }
}

}  // namespace reshard
