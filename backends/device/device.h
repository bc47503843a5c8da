// SPDX-License-Identifier: BSD-3-Clause
// One GPU as the CUDA and NCCL backends see it: memory, streams, events, and two kernels. The
// interface is thin so that the logic above it can be tested on machines without a GPU: the tests
// implement it with host memory, and with the same Thrust source of the kernels compiled for the
// host.
//
// Work given to a stream runs later, in order; only events order the work of different streams.
// Pointers are device memory unless stated to be host memory. Functions throw BackendError naming
// the failing call, except those that are noexcept. A device is used by one thread.
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

// Rows of `units` units each, copied from one pitch to another. Made by tables.h; a kernel takes an
// array of tiles in device memory.
struct CopyTile {
  std::byte* destination;
  const std::byte* source;                       // null: set the rows to zero
  std::int64_t destination_pitch, source_pitch;  // bytes from row to row
  std::int32_t rows, units;                      // units per row
};

// The tiles of one launch, in device memory. unit_bytes: 1, 2, 4, 8 or 16; every pointer, pitch and
// row of every tile is aligned to it. lanes: threads per tile, a power of two.
struct CopyLaunch {
  const CopyTile* tiles;
  std::int64_t count;
  int unit_bytes, lanes;
};

// Row r of an operand starts at data + r * pitch.
struct FoldOperand {
  const std::byte* data;
  std::int64_t pitch;
};

// `rows` rows of `count` elements: destination = (operand 0 op operand 1 op ...) / divisor, folded
// from the left and rounded after every operation (core/bytes/box_fold.h). In every operand the
// tile starts `offset` bytes after the start of row first_row; `destination` is its own first
// element.
struct FoldTile {
  std::byte* destination;
  std::int64_t destination_pitch;
  const FoldOperand* operands;  // in device memory
  std::int64_t first_row, offset;
  std::int32_t operand_count, rows, count;
};

// Like CopyLaunch, for folds. unit_bytes: 16, or the size of an element. can_fold(op, dtype,
// divisor) must hold.
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
  // A thread block of a kernel occupies at least a share of one of these.
  virtual int multiprocessors() const = 0;
  // Makes this the calling thread's current device. Every function below does that itself.
  virtual void select() = 0;

  // 256-byte aligned. Throws BackendError if no memory is left; callers check free_bytes first, so
  // that they can refuse before they allocate anything.
  virtual std::byte* allocate(std::int64_t bytes) = 0;
  virtual void release(std::byte* memory) noexcept = 0;
  virtual std::int64_t free_bytes() = 0;

  virtual Stream create_stream() = 0;
  virtual void destroy(Stream stream) noexcept = 0;
  virtual Event create_event() = 0;
  virtual void destroy(Event event) noexcept = 0;
  virtual void record(Event event, Stream stream) = 0;
  // Work given to the stream from now on waits for what the event recorded.
  virtual void wait(Stream stream, Event event) = 0;
  // Whether the recorded work is complete; errors of earlier work are thrown here.
  virtual bool done(Event event) = 0;
  // Picoseconds between two recorded and complete events of this device.
  virtual std::int64_t elapsed_ps(Event from, Event to) = 0;

  // Host memory must stay valid until the stream has passed the copy; downloaded bytes are valid
  // from then on.
  virtual void upload(std::byte* to, std::span<const std::byte> from_host, Stream stream) = 0;
  virtual void download(std::span<std::byte> to_host, const std::byte* from, Stream stream) = 0;
  virtual void set_bytes(std::byte* to, std::int64_t bytes, std::uint8_t value, Stream stream) = 0;

  // Kernels (tables.h makes the tiles, launch_tables.h launches them). Tiles must stay in device
  // memory until the stream has passed the launch; the tiles of one launch write disjoint bytes,
  // and none reads bytes that another writes.
  virtual void copy(const CopyLaunch& launch, Stream stream) = 0;
  virtual void fold(const FoldLaunch& launch, Stream stream) = 0;
};

}  // namespace reshard::backends
