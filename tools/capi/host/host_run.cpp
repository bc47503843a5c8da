// SPDX-License-Identifier: BSD-3-Clause
#include "tools/capi/host/host_run.h"

#include <limits>
#include <vector>

#include "backends/host/message.h"
#include "core/base/errors.h"
#include "core/bytes/block.h"
#include "tools/capi/host/lent_memory.h"
#include "tools/capi/shards.h"

namespace reshard::capi {
namespace {

using backends::host::Chunk;
using backends::host::End;
using backends::host::HostMessage;
using backends::host::RankMemory;

constexpr std::int64_t kMessageAlignment = 64;

// The messages of one direction, each in one chunk: contiguous ones are passed in place, the others
// are packed into memory allocated here.
class Transfers {
 public:
  Transfers(const Plan& plan, const std::vector<Messages::PeerMessage>& messages, End end,
            const RankMemory& memory, std::int32_t tag) {
    std::int64_t packed_bytes = 0;
    for (const Messages::PeerMessage& message : messages) {
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
        [](const HostMessage& message, std::byte* at) { pack(message, chunk_of(message), at); });
  }
  void unpack_all() const {
    for_each_packed(
        [](const HostMessage& message, std::byte* at) { unpack(message, chunk_of(message), at); });
  }

 private:
  static std::int64_t aligned(std::int64_t bytes) {
    return ceil_div(bytes, kMessageAlignment) * kMessageAlignment;
  }
  static const Chunk& chunk_of(const HostMessage& message) { return message.chunks.front(); }

  template <class Visit>
  void for_each_packed(Visit&& visit) const {
    for (std::size_t i = 0; i < messages_.size(); ++i)
      if (chunk_of(messages_[i]).in_place == nullptr)
        visit(messages_[i], static_cast<std::byte*>(transfers_[i].data));
  }

  std::vector<HostMessage> messages_;
  std::vector<reshard_transfer> transfers_;
  std::unique_ptr<Block> packed_;
};

// The caller's shards, by tensor.
std::vector<CallerShards> lent_to(const reshard_program& program, const reshard_run& run) {
  if (run.tensors == nullptr) {
    if (program.plan->tensors.size() > 1)
      throw InputError("tensors: expected shards of " +
                       std::to_string(program.plan->tensors.size()) + " tensors, found NULL");
    reshard_shards only{sizeof(reshard_shards), 0, run.source, run.source_bytes, run.destination,
                        run.destination_bytes};
    return shards_of(&only, 1);
  }
  if (run.source != nullptr || run.destination != nullptr)
    throw InputError("source, destination: expected NULL with tensors");
  return shards_of(run.tensors, program.plan->tensors.size());
}

void check(const reshard_program& program, const std::vector<CallerShards>& shards,
           const LentMemory& arena) {
  std::vector<LentMemory> all;
  for (std::size_t t = 0; t < shards.size(); ++t) {
    TensorId tensor{static_cast<std::int32_t>(t)};
    check_shards(*program.plan, program.schedule.slot, tensor, shards[t], false, all);
    require_usable(arena, size_bytes(program.plan->request(tensor).dtype()));
  }
  all.push_back(arena);
  require_apart(all);
}

// The caller's arena, after a check of its size; null if the caller gave none.
std::byte* arena_of(const reshard_program& program, const reshard_run& run) {
  if (run.arena != nullptr && run.arena_bytes < program.temporaries.total_bytes)
    throw InputError("arena_bytes: expected at least " +
                     std::to_string(program.temporaries.total_bytes) + ", found " +
                     std::to_string(run.arena_bytes));
  return static_cast<std::byte*>(run.arena);
}

void run_schedule(RankMemory& memory, const Carry& carry) {
  StepId step{-1};
  std::int32_t tag = 0;
  for (const Launch& launch : memory.schedule().launches) {
    // A step has at most two exchanges, so each gets its own tag.
    if (launch.step != step) tag = 2 * static_cast<std::int32_t>(launch.step);
    step = launch.step;
    if (const auto* local = std::get_if<LocalWork>(&launch.work)) {
      local->run(memory);
      continue;
    }
    const auto& work = std::get<Messages>(launch.work);
    if (!work.sends.empty() || !work.receives.empty()) carry(work, memory, tag);
    ++tag;
  }
}

}  // namespace

Carry whole_messages(const Plan& plan, const HostExchange& exchange) {
  return [&plan, &exchange](const Messages& work, const RankMemory& memory, std::int32_t tag) {
    Transfers sends(plan, work.sends, End::Sends, memory, tag),
        receives(plan, work.receives, End::Receives, memory, tag);
    sends.pack_all();
    exchange(sends.transfers(), receives.transfers());
    receives.unpack_all();
  };
}

void run_program(const reshard_program& program, const reshard_run& run, const Carry& carry) {
  std::vector<CallerShards> shards = lent_to(program, run);
  std::byte* arena = arena_of(program, run);
  check(program, shards,
        {"arena", arena, arena == nullptr ? 0 : program.temporaries.total_bytes, true});
  RankMemory memory(program.messages, shards);
  memory.lay_out(program.temporaries, arena);
  memory.lay_out(program.scratch);
  run_schedule(memory, carry);
}

}  // namespace reshard::capi
