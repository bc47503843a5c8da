// SPDX-License-Identifier: BSD-3-Clause
#include "backends/host/message.h"

#include <algorithm>
#include <optional>

#include "core/bytes/box_copy.h"

namespace reshard::backends::host {
namespace {

// Calls visit(lo, extents) for consecutive boxes of at most `limit` elements that together make up
// the box from dim `d` on; dims before `d` are fixed.
template <class Visit>
void cut(const DimVector& extents, int d, std::int64_t limit, DimVector lo, DimVector part,
         const Visit& visit) {
  std::int64_t inner = 1;
  for (int e = d + 1; e < extents.size(); ++e) inner *= extents[e];
  if (inner <= limit) {
    for (std::int64_t at = 0; at < extents[d]; at += limit / inner) {
      lo[d] = at;
      part[d] = std::min(limit / inner, extents[d] - at);
      visit(lo, part);
    }
    return;
  }
  part[d] = 1;
  for (lo[d] = 0; lo[d] < extents[d]; ++lo[d]) cut(extents, d + 1, limit, lo, part, visit);
}

void append_cut(HostMessage& message, const BufferBox& piece, std::int64_t limit_bytes) {
  std::int64_t bytes = piece.bytes();
  std::optional<std::int64_t> stretch = stretch_of(piece.shape, piece.lo, piece.extents);
  std::byte* in_place = stretch ? piece.buffer + *stretch * piece.element_bytes : nullptr;
  if (!message.chunks.empty()) {
    Chunk& last = message.chunks.back();
    if (last.bytes + bytes <= limit_bytes) {
      // Two contiguous stretches that touch are one.
      if (last.in_place == nullptr || in_place != last.in_place + last.bytes)
        last.in_place = nullptr;
      last.bytes += bytes;
      ++last.piece_count;
      message.pieces.push_back(piece);
      return;
    }
  }
  message.chunks.push_back({static_cast<std::uint32_t>(message.pieces.size()), 1, bytes, in_place});
  message.pieces.push_back(piece);
}

}  // namespace

HostMessage message_of(const Messages::PeerMessage& message, End end, const Locate& locate,
                       std::int64_t limit_bytes) {
  HostMessage out;
  for (const PlacedMove& move : message.moves) {
    const Place& mine = end == End::Sends ? move.from : move.to;
    auto [begin, buffer] = locate(mine.buffer);
    append(out, {begin, buffer.shape, mine.lo, move.extents, size_bytes(buffer.dtype)},
           limit_bytes);
  }
  return out;
}

void append(HostMessage& message, const BufferBox& piece, std::int64_t limit_bytes) {
  std::int64_t limit = std::max<std::int64_t>(1, limit_bytes / piece.element_bytes);
  DimVector zero(piece.extents.size(), 0);
  cut(piece.extents, 0, limit, zero, piece.extents,
      [&](const DimVector& lo, const DimVector& extents) {
        BufferBox part = piece;
        part.extents = extents;
        for (int d = 0; d < lo.size(); ++d) part.lo[d] += lo[d];
        append_cut(message, part, limit_bytes);
      });
}

void pack(const HostMessage& message, const Chunk& chunk, std::byte* out) {
  for (std::uint32_t i = chunk.first_piece; i < chunk.first_piece + chunk.piece_count; ++i) {
    const BufferBox& piece = message.pieces[i];
    DimVector zero(piece.extents.size(), 0);
    copy_box(out, {piece.extents, zero}, piece.buffer, {piece.shape, piece.lo}, piece.extents,
             piece.element_bytes);
    out += piece.bytes();
  }
}

void unpack(const HostMessage& message, const Chunk& chunk, const std::byte* in) {
  for (std::uint32_t i = chunk.first_piece; i < chunk.first_piece + chunk.piece_count; ++i) {
    const BufferBox& piece = message.pieces[i];
    DimVector zero(piece.extents.size(), 0);
    copy_box(piece.buffer, {piece.shape, piece.lo}, in, {piece.extents, zero}, piece.extents,
             piece.element_bytes);
    in += piece.bytes();
  }
}

}  // namespace reshard::backends::host
