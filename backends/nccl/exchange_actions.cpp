// SPDX-License-Identifier: BSD-3-Clause
// Exchanges: all of a rank's messages that need it are packed by one launch and unpacked by
// another; between them one group of sends and receives.
//
// NCCL moves contiguous bytes only. A message is packed in the order of its moves, each dense
// row-major; that order is the plan's, so both ends know it.
#include <array>
#include <optional>

#include "backends/nccl/actions.h"
#include "core/base/integers.h"
#include "core/bytes/box_copy.h"
#include "core/schedule/transfers.h"

namespace reshard::backends::nccl {
namespace {

constexpr std::int64_t kAlignment = 256;

enum class End { Source, Destination };

struct MoveEnd {
  BufferId buffer;
  DimVector lo, extents;
};

MoveEnd end_of(const Move& move, End end) {
  return end == End::Source ? MoveEnd{move.source, move.source_lo, move.extents}
                            : MoveEnd{move.destination, move.destination_lo, move.extents};
}

class Exchange {
 public:
  Exchange(const RankMemory& memory, const RankStep& part)
      : memory_(memory),
        part_(part),
        step_(std::get<ExchangeStep>(memory.plan().steps[to_index(part.step)].body)) {}

  std::int64_t staging_bytes() const {
    std::int64_t out = 0;
    for_each_end([&](const ExchangeStep::Message& message, End end) {
      if (!place_of(message, end)) out += staged_bytes(message);
    });
    return out;
  }

  std::vector<Action> actions(LaunchTables& tables) const {
    std::int64_t packed = 0, unpacked = 0;
    for_each_end([&](const ExchangeStep::Message& message, End end) {
      if (!place_of(message, end))
        (end == End::Source ? packed : unpacked) += message_bytes(memory_.plan(), step_, message);
    });
    CopyTiles pack(packed), unpack(unpacked);
    Round round;
    std::byte* staging = memory_.staging();
    for_each_end([&](const ExchangeStep::Message& message, End end) {
      std::byte* at = staging;
      if (std::optional<std::byte*> place = place_of(message, end)) {
        at = *place;
      } else {
        add_tiles(message, end, staging, end == End::Source ? pack : unpack);
        staging += staged_bytes(message);
      }
      std::int32_t peer = to_int(memory_.plan().ranks[static_cast<std::size_t>(
          end == End::Source ? message.destination : message.source)]);
      (end == End::Source ? round.sends : round.receives)
          .push_back({at, message_bytes(memory_.plan(), step_, message), peer});
    });
    std::vector<Action> out;
    out.push_back(Kernel{tables.add(pack)});
    out.push_back(std::move(round));
    out.push_back(Kernel{tables.add(unpack)});
    return out;
  }

 private:
  template <class Visit>
  void for_each_end(Visit&& visit) const {
    for (std::uint32_t m : part_.sends) visit(step_.messages[m], End::Source);
    for (std::uint32_t m : part_.receives) visit(step_.messages[m], End::Destination);
  }

  std::int64_t staged_bytes(const ExchangeStep::Message& message) const {
    return ceil_div(message_bytes(memory_.plan(), step_, message), kAlignment) * kAlignment;
  }

  template <class Visit>
  void for_each_move(const ExchangeStep::Message& message, End end, Visit&& visit) const {
    for (std::uint32_t i = message.moves.first; i < message.moves.first + message.moves.count; ++i)
      visit(end_of(step_.moves[i], end));
  }

  // Where the message's bytes lie as they are sent: its boxes, one behind the other in one buffer.
  // Nothing where they do not.
  std::optional<std::byte*> place_of(const ExchangeStep::Message& message, End end) const {
    std::byte *first = nullptr, *next = nullptr;
    BufferId buffer = kSourceBuffer;
    bool contiguous = true;
    for_each_move(message, end, [&](const MoveEnd& move) {
      Shape shape = memory_.plan().buffer(move.buffer).shape(memory_.slot());
      BoxPlace place{shape, move.lo};
      BoxRows<std::array<std::int64_t, 1>> rows({0}, std::span(&place, 1), move.extents,
                                                memory_.element_bytes());
      std::byte* at = memory_.at(move.buffer) + rows.start[0];
      contiguous = contiguous && rows.outer_dims == 0 &&
                   (first == nullptr || (at == next && move.buffer == buffer));
      buffer = move.buffer;
      if (first == nullptr) first = at;
      next = at + rows.row_bytes;
    });
    return contiguous ? std::optional(first) : std::nullopt;
  }

  void add_tiles(const ExchangeStep::Message& message, End end, std::byte* packed,
                 CopyTiles& tiles) const {
    for_each_move(message, end, [&](const MoveEnd& move) {
      Shape shape = memory_.plan().buffer(move.buffer).shape(memory_.slot());
      DimVector origin(move.extents.size(), 0);
      BoxPlace place{shape, move.lo}, dense{move.extents, origin};
      if (end == End::Source)
        tiles.copy(packed, dense, memory_.at(move.buffer), place, move.extents,
                   memory_.element_bytes());
      else
        tiles.copy(memory_.at(move.buffer), place, packed, dense, move.extents,
                   memory_.element_bytes());
      packed += element_count(move.extents) * memory_.element_bytes();
    });
  }

  const RankMemory& memory_;
  const RankStep& part_;
  const ExchangeStep& step_;
};

}  // namespace

std::int64_t exchange_staging_bytes(const RankMemory& memory, const RankStep& part) {
  return Exchange(memory, part).staging_bytes();
}

std::vector<Action> exchange_actions(const RankMemory& memory, const RankStep& part,
                                     LaunchTables& tables) {
  return Exchange(memory, part).actions(tables);
}

}  // namespace reshard::backends::nccl
