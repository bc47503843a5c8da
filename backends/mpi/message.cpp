// SPDX-License-Identifier: BSD-3-Clause
#include "backends/mpi/message.h"

#include <algorithm>

#include "core/bytes/box_copy.h"

namespace reshard::backends::mpi {
namespace {

// visit(lo, extents) for consecutive boxes of at most `limit` elements that together are the box
// from dim `d` on; dims before it are settled.
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

std::int64_t offset_elements(const Piece& piece) {
  std::int64_t offset = 0;
  for (int d = 0; d < piece.shape.size(); ++d) offset = offset * piece.shape[d] + piece.lo[d];
  return offset;
}

// Whether the box is one stretch of its buffer: before its first dim of more than 1 anything goes,
// after it all dims are whole.
bool contiguous(const Piece& piece) {
  int d = 0;
  while (d < piece.extents.size() && piece.extents[d] == 1) ++d;
  for (++d; d < piece.extents.size(); ++d)
    if (piece.extents[d] != piece.shape[d]) return false;
  return true;
}

void append_cut(Message& message, const Piece& piece, std::int64_t limit_bytes) {
  std::int64_t bytes = element_count(piece.extents) * message.element_bytes;
  std::byte* in_place =
      contiguous(piece) ? piece.buffer + offset_elements(piece) * message.element_bytes : nullptr;
  if (!message.chunks.empty()) {
    Chunk& last = message.chunks.back();
    if (last.bytes + bytes <= limit_bytes) {
      // Two stretches that meet are one.
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

void append(Message& message, const Piece& piece, std::int64_t limit_bytes) {
  std::int64_t limit = std::max<std::int64_t>(1, limit_bytes / message.element_bytes);
  DimVector zero(piece.extents.size(), 0);
  cut(piece.extents, 0, limit, zero, piece.extents,
      [&](const DimVector& lo, const DimVector& extents) {
        Piece part = piece;
        part.extents = extents;
        for (int d = 0; d < lo.size(); ++d) part.lo[d] += lo[d];
        append_cut(message, part, limit_bytes);
      });
}

void pack(const Message& message, const Chunk& chunk, std::byte* out) {
  for (std::uint32_t i = chunk.first_piece; i < chunk.first_piece + chunk.piece_count; ++i) {
    const Piece& piece = message.pieces[i];
    DimVector zero(piece.extents.size(), 0);
    copy_box(out, {piece.extents, zero}, piece.buffer, {piece.shape, piece.lo}, piece.extents,
             message.element_bytes);
    out += element_count(piece.extents) * message.element_bytes;
  }
}

void unpack(const Message& message, const Chunk& chunk, const std::byte* in) {
  for (std::uint32_t i = chunk.first_piece; i < chunk.first_piece + chunk.piece_count; ++i) {
    const Piece& piece = message.pieces[i];
    DimVector zero(piece.extents.size(), 0);
    copy_box(piece.buffer, {piece.shape, piece.lo}, in, {piece.extents, zero}, piece.extents,
             message.element_bytes);
    in += element_count(piece.extents) * message.element_bytes;
  }
}

}  // namespace reshard::backends::mpi
