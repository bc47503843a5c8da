// SPDX-License-Identifier: BSD-3-Clause
// One GPU as the CUDA and NCCL backends see it: memory, streams, events, and three kernels. A thin
// interface, so that the logic above it is tested on machines without a GPU: there the tests put a
// device of their own behind it, whose memory is the host's and whose kernels are the same Thrust
// source compiled for the host.
//
// Work given to a stream runs later, in order; work of different streams is ordered by events only.
// Pointers are device memory unless they are said to be the host's. Functions throw BackendError
// with the failing call, except those that are noexcept. A device is used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/base/dtype.h"

namespace reshard::backends {

struct StreamObject;
struct EventObject;
using Stream = StreamObject*;
using Event = EventObject*;

// Rows of `units` units each, moved from one pitch to another. Made by tables.h; a kernel takes an
// array of tiles that lies in device memory.
struct CopyTile {
  std::byte* destination;
  const std::byte* source;                       // null: the rows are set to zero
  std::int64_t destination_pitch, source_pitch;  // bytes from row to row
  std::int32_t rows, units;                      // units per row
};

// The tiles of one launch, in device memory. unit_bytes: 1, 2, 4, 8 or 16, to which every pointer,
// pitch and row of every tile is aligned. lanes: threads per tile, a power of two.
struct CopyLaunch {
  const CopyTile* tiles;
  std::int64_t count;
  int unit_bytes, lanes;
};

// Row r of an operand begins at data + r * pitch.
struct FoldOperand {
  const std::byte* data;
  std::int64_t pitch;
};

// `rows` rows of `count` elements: destination = (operand 0 op operand 1 op ...) / divisor, folded
// from the left, rounded after every operation (core/bytes/box_fold.h). The tile begins `offset`
// bytes behind the start of row first_row of every operand; `destination` is its own first element.
struct FoldTile {
  std::byte* destination;
  std::int64_t destination_pitch;
  const FoldOperand* operands;  // in device memory
  std::int64_t first_row, offset;
  std::int32_t operand_count, rows, count;
};

// As CopyLaunch, of elements. unit_bytes: 16, or the size of an element. can_fold(op, dtype,
// divisor) holds.
struct FoldLaunch {
  const FoldTile* tiles;
  std::int64_t count;
  int unit_bytes, lanes;
  ReduceOp op;
  DType dtype;
  std::int64_t divisor;
};

class Device {
 public:
  virtual ~Device() = default;

  // "NVIDIA H200, 139.8 GiB, CUDA 13.0".
  virtual std::string description() const = 0;
  // Makes this the calling thread's current device. Every function below does so by itself.
  virtual void select() = 0;

  // 256-byte aligned. BackendError where there is no memory left; callers ask free_bytes first to
  // be able to say so before any is taken.
  virtual std::byte* allocate(std::int64_t bytes) = 0;
  virtual void release(std::byte* memory) noexcept = 0;
  virtual std::int64_t free_bytes() = 0;

  virtual Stream create_stream() = 0;
  virtual void destroy(Stream stream) noexcept = 0;
  virtual Event create_event() = 0;
  virtual void destroy(Event event) noexcept = 0;
  virtual void record(Event event, Stream stream) = 0;
  // Work given to the stream from now on waits for what was recorded.
  virtual void wait(Stream stream, Event event) = 0;
  // Whether what was recorded is complete; errors of earlier work show here.
  virtual bool done(Event event) = 0;
  // Picoseconds from one recorded and complete event to another; from events of one device only.
  virtual std::int64_t elapsed_ps(Event from, Event to) = 0;

  // Host memory must stay until the stream has passed; what is read from the device is there after
  // that.
  virtual void upload(std::byte* to, std::span<const std::byte> from_host, Stream stream) = 0;
  virtual void download(std::span<std::byte> to_host, const std::byte* from, Stream stream) = 0;
  virtual void set_bytes(std::byte* to, std::int64_t bytes, std::uint8_t value, Stream stream) = 0;

  // Kernels (tables.h makes and launches the tiles). Tiles stay in device memory until the stream
  // has passed; those of one launch write disjoint bytes and read none of them.
  virtual void copy(const CopyLaunch& launch, Stream stream) = 0;
  virtual void fold(const FoldLaunch& launch, Stream stream) = 0;
};

}  // namespace reshard::backends
