// SPDX-License-Identifier: BSD-3-Clause
#include "backends/nccl/actions.h"

#include <algorithm>
#include <limits>

#include "backends/host/message.h"
#include "core/base/integers.h"
#include "core/bytes/box_copy.h"
#include "core/schedule/packed_messages.h"

namespace reshard::backends::nccl {

namespace {

using host::End;
using host::HostMessage;

// Placeholder addresses: far from any real address, and from each other.
constexpr std::uintptr_t kMadeUp = std::uintptr_t{1} << 48;

std::optional<NcclType> nccl_type(DType dtype) {
  switch (dtype) {
    case DType::I8:
      return NcclType::Int8;
    case DType::U8:
      return NcclType::Uint8;
    case DType::I32:
      return NcclType::Int32;
    case DType::I64:
      return NcclType::Int64;
    case DType::F16:
      return NcclType::Float16;
    case DType::F32:
      return NcclType::Float32;
    case DType::F64:
      return NcclType::Float64;
    case DType::BF16:
      return NcclType::Bfloat16;
    default:
      return std::nullopt;
  }
}

std::optional<NcclOp> nccl_op(ReduceOp op, DType dtype) {
  if (op == ReduceOp::Sum) return NcclOp::Sum;
  if (op == ReduceOp::Product) return NcclOp::Prod;
  if (is_floating(dtype)) return std::nullopt;
  if (op == ReduceOp::Min) return NcclOp::Min;
  if (op == ReduceOp::Max) return NcclOp::Max;
  return std::nullopt;
}

// The message's boxes in the order of its moves, in one chunk.
HostMessage message_of(const Messages::PeerMessage& message, End end, const RankMemory& memory) {
  return host::message_of(
      message, end,
      [&](BufferId buffer) {
        return host::LocatedBuffer{memory.at(buffer), memory.buffer(buffer)};
      },
      std::numeric_limits<std::int64_t>::max());
}

// visit(peer, transfer, end, staged bytes) for every transfer (packed_messages.h), sends first;
// staged is 0 if it is contiguous.
template <class Visit>
void for_each_message(const Messages& work, const RankMemory& memory, Visit&& visit) {
  for (End end : {End::Sends, End::Receives})
    for (const Messages::PeerMessage& message : end == End::Sends ? work.sends : work.receives) {
      auto bytes_of = [&](std::size_t i) {
        const PlacedMove& move = message.moves[i];
        const Place& mine = end == End::Sends ? move.from : move.to;
        return element_count(move.extents) * size_bytes(memory.dtype(mine.buffer));
      };
      for_each_transfer(message.moves.size(), bytes_of, [&](std::size_t first, std::size_t count) {
        auto begin = message.moves.begin() + static_cast<std::ptrdiff_t>(first);
        HostMessage local = message_of(
            {message.peer, {begin, begin + static_cast<std::ptrdiff_t>(count)}}, end, memory);
        const host::Chunk& chunk = local.chunks.front();
        visit(message.peer, local, end,
              chunk.in_place != nullptr
                  ? 0
                  : ceil_div(chunk.bytes, kPackedAlignment) * kPackedAlignment);
      });
    }
}

// Copies each box of the message to or from its place in `packed`.
void add_tiles(const HostMessage& message, End end, std::byte* packed, CopyTiles& tiles) {
  for (const host::BufferBox& piece : message.pieces) {
    DimVector origin(piece.extents.size());
    BoxPlace place{piece.shape, piece.lo}, dense{piece.extents, origin};
    if (end == End::Sends)
      tiles.copy(packed, dense, piece.buffer, place, piece.extents, piece.element_bytes);
    else
      tiles.copy(piece.buffer, place, packed, dense, piece.extents, piece.element_bytes);
    packed += piece.bytes();
  }
}

std::vector<Action> messages_actions(const Plan& plan, const RankMemory& memory,
                                     const Messages& work, std::int32_t stream,
                                     LaunchTables& tables) {
  std::int64_t packed = 0, unpacked = 0;
  for_each_message(work, memory, [&](Slot, const HostMessage&, End end, std::int64_t staged) {
    (end == End::Sends ? packed : unpacked) += staged;
  });
  CopyTiles pack(packed), unpack(unpacked);
  Round round;
  std::byte* staging = memory.staging(stream);
  for_each_message(work, memory,
                   [&](Slot peer, const HostMessage& message, End end, std::int64_t staged) {
                     const host::Chunk& chunk = message.chunks.front();
                     std::byte* at = chunk.in_place;
                     if (at == nullptr) {
                       at = staging;
                       add_tiles(message, end, at, end == End::Sends ? pack : unpack);
                       staging += staged;
                     }
                     (end == End::Sends ? round.sends : round.receives)
                         .push_back({at, chunk.bytes, to_int(plan.rank_of(peer))});
                   });
  std::vector<Action> out;
  out.push_back(Kernels{{tables.add(pack)}});
  out.push_back(std::move(round));
  out.push_back(Kernels{{tables.add(unpack)}});
  return out;
}

std::byte* begin_of(const RankMemory& memory, const PlacedBox& box) {
  const LocalBuffer& buffer = memory.buffer(box.at.buffer);
  return memory.at(box.at.buffer) +
         stretch_of(buffer.shape, box.at.lo, box.extents).value() * size_bytes(buffer.dtype);
}

Action native_action(const RankMemory& memory, const Launch& launch, const NativeCollective& work) {
  DType dtype = memory.dtype(work.input.at.buffer);
  Native native{work.kind,
                begin_of(memory, work.input),
                begin_of(memory, work.output),
                count_of(work, static_cast<std::int32_t>(launch.group.size())),
                NcclType::Uint8,
                NcclOp::Sum};
  if (work.kind == CollectiveKind::AllGather || work.kind == CollectiveKind::AllToAll) {
    native.count *= size_bytes(dtype);
  } else {
    native.type = nccl_type(dtype).value();
    native.op = nccl_op(work.op, dtype).value();
  }
  return Round{{}, {}, native};
}

}  // namespace

SchedulePolicy schedule_policy(const ActionOptions& options) {
  auto native = [options](const CollectiveFacts& facts) {
    if (options.over_parent || !facts.contiguous) return false;
    if (facts.kind == CollectiveKind::AllToAll) return options.has_all_to_all;
    if (!facts.folds()) return true;
    return !options.declared_order && nccl_type(facts.dtype) && nccl_op(facts.op, facts.dtype);
  };
  return {native, false};
}

std::int64_t staging_bytes(const RankMemory& memory, const Launch& launch) {
  std::int64_t out = 0;
  if (const auto* work = std::get_if<Messages>(&launch.work))
    for_each_message(*work, memory,
                     [&](Slot, const HostMessage&, End, std::int64_t staged) { out += staged; });
  return out;
}

std::vector<Action> make_actions(const Plan& plan, const RankMemory& memory, const Launch& launch,
                                 std::int32_t stream, LaunchTables& tables) {
  if (const auto* messages = std::get_if<Messages>(&launch.work))
    return messages_actions(plan, memory, *messages, stream, tables);
  if (const auto* native = std::get_if<NativeCollective>(&launch.work))
    return {native_action(memory, launch, *native)};
  const auto& local = std::get<LocalWork>(launch.work);
  return {Kernels{add_operations([&](Operations& out) { local.run(out); }, memory, tables)}};
}

RankMemory::RankMemory(const RankSchedule& schedule, std::span<const CallerShards> shards)
    : schedule_(schedule),
      layout_(lay_out_temporaries(temporary_lives(schedule), kPackedAlignment)) {
  std::uintptr_t next = 0;
  auto made_up = [&](std::int64_t bytes) {
    return Region{reinterpret_cast<std::byte*>(kMadeUp * ++next), bytes};
  };
  // Shards come before temporaries.
  for (std::size_t b = 0; b < schedule.buffers.size() && !schedule.buffers[b].temporary; ++b) {
    regions_.push_back(made_up(schedule.buffers[b].bytes()));
    if (shards.empty()) continue;
    const CallerShards& lent = shards[b / 2];
    // No plan writes to its source.
    regions_[b].begin =
        b % 2 == 0 ? const_cast<std::byte*>(lent.source.data()) : lent.destination.data();
    regions_[b].needed_bytes = 0;
  }
  regions_.push_back(made_up(layout_.total_bytes));
  for (std::int32_t stream = 0; stream < kMaxStreams; ++stream) staging_.push_back(made_up(0));
}

void RankMemory::need_staging(std::int32_t stream, std::int64_t bytes) {
  std::int64_t& needed = staging_[to_index(stream)].needed_bytes;
  needed = std::max(needed, bytes);
}

template <class Visit>
void RankMemory::for_each_region(Visit&& visit) {
  for (std::vector<Region>* regions : {&regions_, &staging_})
    for (Region& region : *regions) visit(region);
}

std::int64_t RankMemory::needed_bytes() const {
  std::int64_t out = 0;
  for (const std::vector<Region>* regions : {&regions_, &staging_})
    for (const Region& region : *regions)
      out += ceil_div(region.needed_bytes, kPackedAlignment) * kPackedAlignment;
  return out;
}

void RankMemory::allocate(Device& device) {
  for_each_region([&](Region& region) {
    if (region.needed_bytes == 0) return;
    region.memory = DeviceMemory(device, region.needed_bytes);
    region.begin = region.memory.data();
  });
}

void RankMemory::abandon() {
  for_each_region([](Region& region) { region.memory.abandon(); });
}

std::byte* RankMemory::at(BufferId buffer) const {
  if (!schedule_.buffer(buffer).temporary) return regions_[to_index(buffer)].begin;
  return regions_.back().begin + layout_.offset[to_index(buffer)];
}

}  // namespace reshard::backends::nccl
