// SPDX-License-Identifier: BSD-3-Clause
// A message as this process sees it: boxes of its own buffers, in order, cut into chunks.
//
// Both ends cut alike, as a cut depends on the extents of the boxes and on the chunk limit only. A
// chunk is what travels at once: MPI's counts stay far below 2^31 - 1, the packing of one chunk
// overlaps with the way of another, and a slot of shared memory holds one. A chunk that is one
// contiguous stretch of a buffer travels from there and to there, without packing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/schedule/rank_schedule.h"

namespace reshard::backends::host {

// A box at `lo` of a buffer of `shape`.
struct BufferBox {
  std::byte* buffer;
  Shape shape;
  DimVector lo, extents;
  std::int64_t element_bytes;
  std::int64_t bytes() const { return element_count(extents) * element_bytes; }
};

struct Chunk {
  std::uint32_t first_piece, piece_count;
  std::int64_t bytes;
  std::byte* in_place;  // where it lies, if it is contiguous; else null
};

struct HostMessage {
  int peer = -1;  // in the terms of whoever carries it
  int tag = 0;
  std::vector<BufferBox> pieces;
  std::vector<Chunk> chunks;
};

enum class End : std::uint8_t { Sends, Receives };

// Addresses may be a GPU's: they are not looked at.
struct LocatedBuffer {
  std::byte* begin;
  const LocalBuffer& buffer;
};
using Locate = std::function<LocatedBuffer(BufferId)>;

// As the rank sees it that sends or receives, whose buffers `locate` finds.
HostMessage message_of(const Messages::PeerMessage& message, End end, const Locate& locate,
                       std::int64_t limit_bytes);

// Appends a box to the message, cut into boxes of at most `limit_bytes` (but at least one element),
// consecutive in row-major order, and those into chunks. Extents > 0.
void append(HostMessage& message, const BufferBox& piece, std::int64_t limit_bytes);

// The chunk's boxes, one after another, each row-major.
void pack(const HostMessage& message, const Chunk& chunk, std::byte* out);
void unpack(const HostMessage& message, const Chunk& chunk, const std::byte* in);

}  // namespace reshard::backends::host
