// SPDX-License-Identifier: BSD-3-Clause
#include "tools/capi/host_run.h"

#include <limits>
#include <vector>

#include "backends/host/message.h"
#include "core/base/errors.h"
#include "core/bytes/block.h"

namespace reshard::capi {
namespace {

using backends::host::Chunk;
using backends::host::End;
using backends::host::Message;
using backends::host::RankMemory;

constexpr std::int64_t kMessageAlignment = 64;

// Messages of one direction, each in one chunk: those that lie ready travel as they are, the others
// through memory of ours.
class Transfers {
 public:
  Transfers(const Plan& plan, const std::vector<Messages::Message>& messages, End end,
            const RankMemory& memory, std::int32_t tag) {
    std::int64_t packed_bytes = 0;
    for (const Messages::Message& message : messages) {
      messages_.push_back(
          message_of(message, end, std::cref(memory), std::numeric_limits<std::int64_t>::max()));
      const Chunk& chunk = chunk_of(messages_.back());
      transfers_.push_back({to_int(plan.rank_of(message.peer)), tag, chunk.in_place, chunk.bytes});
      if (chunk.in_place == nullptr) packed_bytes += aligned(chunk.bytes);
    }
    packed_ = std::make_unique<Block>(packed_bytes);
    std::byte* at = packed_->data();
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      if (transfers_[i].data != nullptr) continue;
      transfers_[i].data = at;
      at += aligned(transfers_[i].bytes);
    }
  }

  std::span<const reshard_transfer> transfers() const { return transfers_; }
  void pack_all() const {
    for_each_packed(
        [](const Message& message, std::byte* at) { pack(message, chunk_of(message), at); });
  }
  void unpack_all() const {
    for_each_packed(
        [](const Message& message, std::byte* at) { unpack(message, chunk_of(message), at); });
  }

 private:
  static std::int64_t aligned(std::int64_t bytes) {
    return ceil_div(bytes, kMessageAlignment) * kMessageAlignment;
  }
  static const Chunk& chunk_of(const Message& message) { return message.chunks.front(); }

  template <class Visit>
  void for_each_packed(Visit&& visit) const {
    for (std::size_t i = 0; i < messages_.size(); ++i)
      if (chunk_of(messages_[i]).in_place == nullptr)
        visit(messages_[i], static_cast<std::byte*>(transfers_[i].data));
  }

  std::vector<Message> messages_;
  std::vector<reshard_transfer> transfers_;
  std::unique_ptr<Block> packed_;
};

void carry(const Plan& plan, const Messages& work, const RankMemory& memory, std::int32_t tag,
           const HostExchange& exchange) {
  if (work.sends.empty() && work.receives.empty()) return;
  Transfers sends(plan, work.sends, End::Sends, memory, tag),
      receives(plan, work.receives, End::Receives, memory, tag);
  sends.pack_all();
  exchange(sends.transfers(), receives.transfers());
  receives.unpack_all();
}

}  // namespace

void run_schedule(const Plan& plan, RankMemory& memory, const HostExchange& exchange) {
  StepId step{-1};
  std::int32_t tag = 0;
  for (const Launch& launch : memory.schedule().launches) {
    // A step has at most two exchanges.
    if (launch.step != step) tag = 2 * static_cast<std::int32_t>(launch.step);
    step = launch.step;
    if (const auto* local = std::get_if<LocalWork>(&launch.work))
      local->run(memory);
    else
      carry(plan, std::get<Messages>(launch.work), memory, tag++, exchange);
  }
}

}  // namespace reshard::capi
