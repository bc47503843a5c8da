// SPDX-License-Identifier: BSD-3-Clause
// Point-to-point messages. All receives are begun before the first send, so that MPI can put bytes
// where they belong instead of into memory of its own.
#include <vector>

#include "backends/mpi/parts.h"

namespace reshard::backends::mpi {
namespace {

class ExchangePart : public Part {
 public:
  ExchangePart(const PartContext& context, const ExchangeStep& step) {
    for (std::uint32_t i : context.step.receives)
      receives_.push_back(message_of(context, step, step.messages[i], true));
    // Towards higher ranks first and then round: not all ranks send to rank 0 at once.
    std::size_t from = 0;
    while (from < context.step.sends.size() &&
           step.messages[context.step.sends[from]].destination < context.slot)
      ++from;
    for (std::size_t k = 0; k < context.step.sends.size(); ++k)
      sends_.push_back(message_of(
          context, step, step.messages[context.step.sends[(from + k) % context.step.sends.size()]],
          false));
  }

  void issue(Traffic& traffic) override {
    for (const Message& message : receives_) traffic.receive(message, pending);
    for (const Message& message : sends_) traffic.send(message, pending);
  }

 private:
  static Message message_of(const PartContext& context, const ExchangeStep& step,
                            const ExchangeStep::Message& message, bool receives) {
    Message out;
    out.peer = context.process(receives ? message.source : message.destination);
    out.tag = context.tag();
    out.element_bytes = context.element_bytes();
    for (std::uint32_t i = message.moves.first; i < message.moves.first + message.moves.count;
         ++i) {
      Move move = step.moves[i];
      BufferId buffer = receives ? move.destination : move.source;
      append(out,
             {context.memory.of(buffer), context.plan.buffer(buffer).shape(context.slot),
              receives ? move.destination_lo : move.source_lo, move.extents},
             context.traffic.chunk_bytes(out.peer));
    }
    return out;
  }

  std::vector<Message> receives_, sends_;
};

}  // namespace

std::unique_ptr<Part> make_exchange_part(const PartContext& context) {
  return std::make_unique<ExchangePart>(context, std::get<ExchangeStep>(context.body().body));
}

}  // namespace reshard::backends::mpi
