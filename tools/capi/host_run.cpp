// SPDX-License-Identifier: BSD-3-Clause
#include "tools/capi/host_run.h"

#include <array>
#include <cstring>
#include <optional>

#include "core/base/errors.h"
#include "core/bytes/block.h"
#include "core/bytes/box_copy.h"
#include "core/bytes/box_fold.h"
#include "core/schedule/transfers.h"

namespace reshard::capi {
namespace {

constexpr std::int64_t kMessageAlignment = 64;

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kMessageAlignment - 1) / kMessageAlignment * kMessageAlignment;
}

class HostRun {
 public:
  HostRun(const Plan& plan, const RankProgram& program, const TemporaryLayout& temporaries,
          const HostBuffers& buffers, const HostExchange& exchange)
      : plan_(plan),
        slot_(program.slot),
        temporaries_(temporaries),
        buffers_(buffers),
        exchange_(exchange),
        dtype_(plan.request().dtype()),
        width_(size_bytes(plan.request().dtype())) {}

  void run(const RankStep& part) {
    part_ = &part;
    std::visit([this](const auto& body) { run_body(body); }, plan_.steps[to_index(part.step)].body);
  }

 private:
  const std::byte* read(BufferId buffer) const {
    return buffer == kSourceBuffer ? buffers_.source : write(buffer);
  }
  std::byte* write(BufferId buffer) const {
    RESHARD_CHECK(buffer != kSourceBuffer, "the source is written");
    if (buffer == kDestinationBuffer) return buffers_.destination;
    return buffers_.arena + temporaries_.offset[to_index(buffer)];
  }
  Shape shape(BufferId buffer) const { return plan_.buffer(buffer).shape(slot_); }
  std::int64_t bytes(BufferId buffer) const {
    return plan_.buffer(buffer).elements(slot_) * width_;
  }
  std::int32_t rank(Slot slot) const { return to_int(plan_.ranks[static_cast<std::size_t>(slot)]); }

  void run_body(const CopyStep& step) {
    MoveRange moves = step.parts[part_->first_part].moves;
    for (std::uint32_t i = moves.first; i < moves.first + moves.count; ++i) {
      Move move = step.moves[i];
      Shape from = shape(move.source), to = shape(move.destination);
      copy_box(write(move.destination), {to, move.destination_lo}, read(move.source),
               {from, move.source_lo}, move.extents, width_);
    }
  }

  void run_body(const FillStep& step) {
    for (std::uint32_t i = part_->first_part; i < part_->first_part + part_->part_count; ++i) {
      const FillStep::Part& part = step.parts[i];
      if (part.box.empty()) continue;
      Shape whole = shape(part.buffer);
      clear_box(write(part.buffer), {whole, part.box.lo}, part.box.extents(), width_);
    }
  }

  void run_body(const ReduceStep& step) {
    for (std::uint32_t i = part_->first_part; i < part_->first_part + part_->part_count; ++i)
      reduce(step, step.parts[i]);
  }

  void reduce(const ReduceStep& step, const ReduceStep::Part& part) {
    if (element_count(part.extents) == 0) return;
    BoxFold fold(write(part.destination), shape(part.destination), part.destination_lo,
                 part.extents);
    for (std::uint32_t k = 0; k < part.operand_count; ++k) {
      const ReduceStep::Operand& operand = step.operands[part.first_operand + k];
      fold.add_operand(read(operand.buffer), shape(operand.buffer), operand.lo);
    }
    fold.run(step.op, dtype_, step.divisor);
  }

  // Where a message lies contiguously in one of our buffers already, as whole shards do: its offset
  // there.
  std::optional<std::int64_t> place_in_buffer(const ExchangeStep& step,
                                              const ExchangeStep::Message& message,
                                              bool sends) const {
    if (message.moves.count != 1) return std::nullopt;
    Move move = step.moves[message.moves.first];
    Shape whole = shape(sends ? move.source : move.destination);
    BoxPlace place{whole, sends ? move.source_lo : move.destination_lo};
    BoxRows<std::array<std::int64_t, 1>> rows({0}, std::span(&place, 1), move.extents, width_);
    if (rows.outer_dims > 0) return std::nullopt;
    return rows.start[0];
  }

  // Calls visit(move, its place in the message) for the moves of a message.
  template <class Visit>
  void for_each_move(const ExchangeStep& step, const ExchangeStep::Message& message,
                     std::byte* packed, Visit&& visit) const {
    for (std::uint32_t i = message.moves.first; i < message.moves.first + message.moves.count;
         ++i) {
      visit(step.moves[i], packed);
      packed += step.moves.elements(i) * width_;
    }
  }

  // Messages of one direction: those that lie ready as they are, the others in `packed` from `at`
  // on, which is moved behind them.
  std::vector<reshard_transfer> transfers_of(const ExchangeStep& step, bool sends,
                                             std::byte* packed, std::int64_t& at) const {
    std::vector<reshard_transfer> out;
    for (std::uint32_t i : sends ? part_->sends : part_->receives) {
      const ExchangeStep::Message& message = step.messages[i];
      reshard_transfer transfer{rank(sends ? message.destination : message.source), tag(0), nullptr,
                                message_bytes(plan_, step, message)};
      if (std::optional<std::int64_t> offset = place_in_buffer(step, message, sends)) {
        Move move = step.moves[message.moves.first];
        transfer.data = sends ? const_cast<std::byte*>(read(move.source)) + *offset
                              : write(move.destination) + *offset;
      } else {
        if (packed != nullptr) transfer.data = packed + at;
        at += aligned(transfer.bytes);
      }
      out.push_back(transfer);
    }
    return out;
  }

  void run_body(const ExchangeStep& step) {
    std::int64_t packed_bytes = 0, at = 0;
    transfers_of(step, true, nullptr, packed_bytes);
    transfers_of(step, false, nullptr, packed_bytes);
    Block packed(packed_bytes);
    std::vector<reshard_transfer> sends = transfers_of(step, true, packed.data(), at),
                                  receives = transfers_of(step, false, packed.data(), at);
    auto is_packed = [&](const reshard_transfer& transfer) {
      return transfer.data >= packed.data() && transfer.data < packed.data() + packed_bytes;
    };
    for (std::size_t k = 0; k < sends.size(); ++k) {
      if (!is_packed(sends[k])) continue;
      for_each_move(step, step.messages[part_->sends[k]], static_cast<std::byte*>(sends[k].data),
                    [&](const Move& move, std::byte* to) {
                      Shape from = shape(move.source);
                      copy_box(to, {move.extents, DimVector(move.extents.size(), 0)},
                               read(move.source), {from, move.source_lo}, move.extents, width_);
                    });
    }
    exchange_(sends, receives);
    for (std::size_t k = 0; k < receives.size(); ++k) {
      if (!is_packed(receives[k])) continue;
      for_each_move(
          step, step.messages[part_->receives[k]], static_cast<std::byte*>(receives[k].data),
          [&](const Move& move, std::byte* from) {
            Shape to = shape(move.destination);
            copy_box(write(move.destination), {to, move.destination_lo}, from,
                     {move.extents, DimVector(move.extents.size(), 0)}, move.extents, width_);
          });
    }
  }

  // A step has at most two exchanges.
  std::int32_t tag(int exchange) const {
    return 2 * static_cast<std::int32_t>(part_->step) + exchange;
  }

  struct Part {
    std::byte* data;
    std::int64_t bytes;
  };

  // send(j) goes to member j, receive(j) comes from it, for all other members j of the rank's
  // group. Parts of 0 bytes are left out.
  template <class Send, class Receive>
  void with_group(const CollectiveStep& step, int exchange, Send&& send, Receive&& receive) {
    std::span<const Slot> group = step.group(static_cast<std::size_t>(part_->group));
    std::vector<reshard_transfer> sends, receives;
    for (std::int32_t j = 0; j < step.group_size; ++j) {
      if (j == part_->member) continue;
      std::int32_t peer = rank(group[static_cast<std::size_t>(j)]);
      if (Part part = send(j); part.bytes > 0)
        sends.push_back({peer, tag(exchange), part.data, part.bytes});
      if (Part part = receive(j); part.bytes > 0)
        receives.push_back({peer, tag(exchange), part.data, part.bytes});
    }
    if (!sends.empty() || !receives.empty()) exchange_(sends, receives);
  }

  // Gets the operands of our block [offset, offset + size) from the group, whose blocks begin at
  // block_offset(j), and folds them in its order.
  template <class BlockOffset>
  void fold_block(const CollectiveStep& step, std::int64_t offset, std::int64_t size,
                  std::byte* out, BlockOffset&& block_offset) {
    auto* input = const_cast<std::byte*>(read(step.input));
    Block operands(size * (step.group_size - 1));
    auto operand = [&](std::int32_t j) {
      return operands.data() + size * (j < part_->member ? j : j - 1);
    };
    with_group(
        step, 0,
        [&](std::int32_t j) {
          return Part{input + block_offset(j), block_offset(j + 1) - block_offset(j)};
        },
        [&](std::int32_t j) {
          return Part{operand(j), size};
        });
    if (size == 0) return;
    std::vector<const std::byte*> ordered;
    for (std::int32_t j = 0; j < step.group_size; ++j)
      ordered.push_back(j == part_->member ? input + offset : operand(j));
    fold_row(step.op, dtype_, step.divisor, ordered, out, size / width_);
  }

  void run_body(const CollectiveStep& step) {
    std::int32_t n = step.group_size, me = part_->member;
    switch (step.kind) {
      case CollectiveKind::AllGather:
      case CollectiveKind::AllToAll: {
        bool gathers = step.kind == CollectiveKind::AllGather;
        std::int64_t block = bytes(step.output) / n;
        auto* input = const_cast<std::byte*>(read(step.input));
        std::byte* output = write(step.output);
        auto outgoing = [&](std::int32_t j) {
          return Part{gathers ? input : input + j * block, block};
        };
        auto incoming = [&](std::int32_t j) { return Part{output + j * block, block}; };
        std::memcpy(incoming(me).data, outgoing(me).data, static_cast<std::size_t>(block));
        return with_group(step, 0, outgoing, incoming);
      }
      case CollectiveKind::ReduceScatter: {
        std::int64_t block = bytes(step.output);
        return fold_block(step, me * block, block, write(step.output),
                          [&](std::int32_t j) { return j * block; });
      }
      case CollectiveKind::AllReduce: {
        // Blocks as even as whole elements allow.
        std::int64_t elements = bytes(step.input) / width_;
        auto begin = [&](std::int32_t j) {
          return (elements / n * j + elements % n * j / n) * width_;
        };
        std::byte* output = write(step.output);
        auto share = [&](std::int32_t j) {
          return Part{output + begin(j), begin(j + 1) - begin(j)};
        };
        fold_block(step, begin(me), share(me).bytes, share(me).data, begin);
        return with_group(
            step, 1, [&](std::int32_t) { return share(me); }, share);
      }
    }
  }

  const Plan& plan_;
  Slot slot_;
  const TemporaryLayout& temporaries_;
  const HostBuffers& buffers_;
  const HostExchange& exchange_;
  DType dtype_;
  std::int64_t width_;
  const RankStep* part_ = nullptr;
};

}  // namespace

void run_program(const Plan& plan, const RankProgram& program, const TemporaryLayout& temporaries,
                 const HostBuffers& buffers, const HostExchange& exchange) {
  HostRun run(plan, program, temporaries, buffers, exchange);
  for (const RankStep& step : program.steps) run.run(step);
}

}  // namespace reshard::capi
