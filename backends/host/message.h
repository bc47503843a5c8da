// SPDX-License-Identifier: BSD-3-Clause
// A message as this process sees it: boxes of its own buffers, in order, cut into chunks.
//
// Both ends cut the same way, since a cut depends only on the extents of the boxes and the chunk
// limit. A chunk is the unit of transfer: MPI counts stay far below 2^31 - 1, packing one chunk
// overlaps with the transfer of another, and a slot of shared memory holds one chunk. A chunk that
// is contiguous in a buffer is sent from there, or received there, without packing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/schedule/rank_schedule.h"

namespace reshard::backends::host {

// The box of `extents` at `lo` of a buffer of `shape`.
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
  std::byte* in_place;  // its address if it is contiguous, else null
};

struct HostMessage {
  int peer = -1;  // numbered as by the code that carries the message
  int tag = 0;
  std::vector<BufferBox> pieces;
  std::vector<Chunk> chunks;
};

enum class End : std::uint8_t { Sends, Receives };

// Addresses may be device pointers: they are never dereferenced here.
struct LocatedBuffer {
  std::byte* begin;
  const LocalBuffer& buffer;
};
using Locate = std::function<LocatedBuffer(BufferId)>;

// The message as its sender or its receiver (`end`) sees it; `locate` finds that rank's buffers.
HostMessage message_of(const Messages::PeerMessage& message, End end, const Locate& locate,
                       std::int64_t limit_bytes);

// Appends a box to the message: cut into boxes of at most `limit_bytes` (but at least one element),
// consecutive in row-major order, which are then grouped into chunks. All extents must be > 0.
void append(HostMessage& message, const BufferBox& piece, std::int64_t limit_bytes);

// The chunk's boxes, one after another, each row-major.
void pack(const HostMessage& message, const Chunk& chunk, std::byte* out);
void unpack(const HostMessage& message, const Chunk& chunk, const std::byte* in);

}  // namespace reshard::backends::host
